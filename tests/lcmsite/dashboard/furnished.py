"""A workspace in which every page has something to show, in whichever words are given, and the address of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import override_settings
from django.urls import reverse
from pytest_django import DjangoDbBlocker

from compaction.engine import CompactionEngine
from compaction.history.types import HistoryKind
from compaction.hosts.host_service import HostCompaction
from compaction.models import ModelEndpoint
from compaction.plans.plan_store import CompactionPlans
from conversations.content.lossless_values import MAX_NAME, is_name, storable
from conversations.files.large_files import LargeFileService
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import Repairs
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from lcmsite.access import keys, users
from lcmsite.types import Role as Standing
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from tests.committed import committed
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.integrity.breaking import breaking
from tests.lcmsite.dashboard.furnished_past import BARE, YOUNG, FurnishedPast, furnish_map_runs, furnish_past
from tests.statements import execute
from tests.summaries import a_summary_of

PASSWORD = "correct horse 1"
SMALL = {"leaf_chunk_tokens": 600, "leaf_target_tokens": 60, "condensed_target_tokens": 90, "fresh_tail_count": 4}
# What is around the words, so that there is something to compact and to find.
FILLER = "This turn was about the harbour and its boats. " * 8
LONGEST_USERNAME = 150
LONGEST_KEY_NAME = 200
# Of a long text so much says in a name what it is; the longest of all fills one.
A_PIECE = 120
USERS = 6
MOST_TYPED = 200
_OF_WORKSPACE = (
    "overview", "conversations", "projects", "project", "search", "ask", "about", "runs", "map-runs", "files",
    "integrity", "repair-plans", "quarantine", "retention", "erasures", "grants", "keys", "members", "workspaces",
    "settings", "audit", "import",
)  # fmt: skip
_OF_CONVERSATION = (
    "transcript", "lineage", "inspector", "conversation-runs", "boundaries", "plans", "conversation-files",
    "conversation-trust", "choose-erasure",
)  # fmt: skip


@dataclass(frozen=True)
class Furnished:
    """What there is, by the names of the parameters in `urls`; `told` is something to type into forms."""

    conversation_id: int
    summary_id: str
    file_id: str
    report_id: str
    code: str
    repair_id: str
    plan_id: str
    scan_id: int
    run_id: str
    job_id: int
    message_id: str
    receipts: tuple[str, str]
    map_runs: Sequence[str]
    told: str
    past: FurnishedPast

    def pages(self) -> Iterator[tuple[str, str]]:
        """Every page there is to look at, by its name in `urls`, and its address."""
        for name in _OF_WORKSPACE:
            yield name, self._address(name)
        for name in _OF_CONVERSATION:
            yield name, self._address(name, conversation_id=self.conversation_id)
        yield "search", self._address("search", query="harbour", mode="full_text", scope="all")
        yield "search", self._address("search", query=self.told, tool_names=self.told, until=self.told)
        yield "conversations", self._address("conversations", q=self.told)
        yield "lineage", self._address("lineage", conversation_id=self.conversation_id, node=self.summary_id)
        yield (
            "inspector",
            self._address("inspector", conversation_id=self.conversation_id, query="harbour", budget="900"),
        )
        yield (
            "inspector",
            self._address("inspector", conversation_id=self.conversation_id, query=self.told, as_of=self.told),
        )
        for kind in HistoryKind:
            yield "project", self._address("project", project=self.told, kind=kind)
        yield "project", self._address("project", project=YOUNG)
        yield "project", self._address("project", project=self.told, query="boat")
        for id in self.past:
            yield "session-summary", self._address("session-summary", summary_id=id)
            yield "rests-on", self._address("rests-on", summary_id=id)
        yield "plan", self._address("plan", conversation_id=self.conversation_id, plan_id=self.plan_id)
        for id in self.map_runs:
            yield "map-run", self._address("map-run", map_run_id=id)
        yield "map-run", self._address("map-run", map_run_id=self.map_runs[0], state="done")
        yield "map-runs", self._address("map-runs", state="queued")
        yield "about", self._address("about", entity=self.told, aspect=self.told, question=self.told)
        yield "message", self._address("message", message_id=self.message_id)
        yield "file", self._address("file", file_id=self.file_id)
        for id in (self.message_id, self.summary_id, self.file_id, self.past.superseded_id):
            yield "impact", self._address("impact", item_id=id)
        yield "impact", self._address("impact", item_id=self.summary_id, direction="downstream", max_depth="1")
        yield "report", self._address("report", report_id=self.report_id)
        yield "report", self._address("report", report_id=self.report_id, code=self.code)
        yield "repairs", self._address("repairs", repair_id=self.repair_id)
        yield "scan", self._address("scan", scan_id=self.scan_id)
        for name in ("projects", "project", "map-runs", "runs", "jobs", "repair-plans", "conversations"):
            yield name, reverse(name, kwargs={"workspace": BARE})

    def pages_of_the_site(self) -> Iterator[tuple[str, str]]:
        """Every page that superusers alone may open."""
        yield "models", self._address("models")
        yield "clock", self._address("clock")

    def pieces(self) -> Iterator[tuple[str, str]]:
        """What a script on those pages asks for afterwards."""
        here: Mapping[str, Any] = {"conversation_id": self.conversation_id}
        first, second = self.receipts
        for name in ("pulse", "shelf", "jobs", "history-jobs", "storage"):
            yield name, self._address(name)
        yield "more-messages", self._address("more-messages", **here, seq=1)
        yield "more-messages", self._address("more-messages", **here, before=41)
        yield "conversation-jobs", self._address("conversation-jobs", **here)
        yield "job", self._address("job", **here, job_id=self.job_id)
        yield "plan-progress", self._address("plan-progress", **here, plan_id=self.plan_id)
        yield "lineage-window", self._address("lineage-window", **here, **{"from": 3, "to": 20})
        # An id in a question is no id in a path.
        yield "lineage-window", f"{self._address('lineage-window', **here)}?{urlencode({'run': self.run_id})}"
        for name in ("lineage-summary", "lineage-sources", "lineage-branch"):
            yield name, self._address(name, **here, summary_id=self.summary_id)
        yield "compare-receipts", self._address("compare-receipts", **here, receipt=first, other=second)
        yield "rests-on", self._address("rests-on", summary_id=self.past.epoch_id)
        yield "map-progress", self._address("map-progress", map_run_id=self.map_runs[0])
        yield "file-lines", self._address("file-lines", file_id=self.file_id)
        yield "repair-history", self._address("repair-history", repair_id=self.repair_id)

    def ways_out(self) -> Iterator[tuple[str, str]]:
        """Addresses that lead elsewhere: bytes to be saved, and the way to a page that is known by an id."""
        yield "file-download", self._address("file-download", file_id=self.file_id)
        yield "lineage-window", self._address("lineage-window", conversation_id=self.conversation_id, download="")
        yield "place", self._address("place", id=self.message_id)

    def answers(self) -> Iterator[tuple[str, str]]:
        """What searching and assembling come to, each in the ways that ask most, as a script asks for it."""
        for asked in (
            {"query": "harbour"},
            {"query": "harbour", "scope": "all"},
            {"query": "harbour", "scope": "all", "under": self.summary_id},
            {"query": "what boats are in the harbour?", "scope": "all", "sort": "hybrid"},
            {"query": "seven_ferries", "scope": "all"},
            {"query": "seven_ferries", "scope": "all", "cold": "true"},
            {"query": "harb.*boats", "mode": "regex", "scope": "all"},
            {"query": "harbour", "conversation_id": self.conversation_id, "roles": "user", "tool_names": self.told},
            # What nobody said, in any reading; and with everything that can be asked for at once.
            {"query": '"no such zeppelin" quux/frobnicate', "scope": "all"},
            {"query": '"no such zeppelin" quux', "scope": "all", "sort": "recency"},
            {"query": '"no such harbour" a/b', "scope": "both", "under": self.summary_id, "from_seq": 2},
            {"query": '"harbour of boats" that is in which of the places?', "tool_names": "paint", "sort": "hybrid"},
        ):
            yield "search", f"{self._address('search')}?{urlencode(asked)}"
        for asked in ({"entity": "harbour"}, {"entity": "harbour", "aspect": "boats", "question": "Which?"}):
            yield "about", f"{self._address('about')}?{urlencode(asked)}"
        for name in ("inspector", "context-text"):
            for asked in (
                {"budget": 900},
                {"budget": 90_000, "format": "openai"},
                {"budget": 900, "as_of": 30},
                {"budget": 900, "query": "harbour"},
                {"budget": 900, "query": "what boats are in the harbour?"},
                {"budget": 900, "query": "no such zeppelin harbour"},
                {"budget": 900, "query": "seven_ferries", "as_of": "2100-01-01T00:00:00Z", "format": "anthropic"},
            ):
                yield name, f"{self._address(name, conversation_id=self.conversation_id)}?{urlencode(asked)}"

    @staticmethod
    def _address(name: str, **given: Any) -> str:
        in_path = {key: given.pop(key) for key in list(given) if key.endswith("_id")}
        path = reverse(name, kwargs={"workspace": "default", **in_path})
        return f"{path}?{urlencode(given, errors='surrogatepass')}" if given else path


@dataclass(frozen=True)
class Words:
    """Texts to be said everywhere, in turn."""

    strings: Sequence[str]

    def texts(self, count: int) -> list[str]:
        """All of them, in so many texts."""
        return ["\n".join(self.strings[place::count]) for place in range(count)]

    def names(self, longest: int = MAX_NAME) -> list[str]:
        """All that a name can hold, cut where they are too long, in as few names as there can be."""
        names = [""]
        widest = max(self.strings, key=len)
        for string in self.strings:
            piece = string[: longest if string == widest else A_PIECE]
            if not is_name(piece):
                continue
            if len(names[-1]) + len(piece) + 1 > longest:
                names.append("")
            names[-1] = f"{names[-1]} {piece}".strip(" ")
        return [name for name in names if is_name(name)]

    def usernames(self, count: int) -> list[str]:
        """Some that a person can have: printable, and without blanks."""
        fit = [each[:LONGEST_USERNAME] for each in self.strings]
        return [each for each in dict.fromkeys(fit) if each and each.isprintable() and " " not in each][:count]


def furnish(strings: Sequence[str]) -> Furnished:
    """Say all of these wherever something can be said; whoever did it is called by one of them, too."""
    words = Words(strings)
    names, usernames = words.names(), words.usernames(USERS)
    scope = Scope(a_workspace().pk, actor=f"user {usernames[0]}")
    turn = itertools.cycle(names).__next__
    for name in names:
        a_conversation(name, title=name, session_id=name[::-1])
    conversation_id = a_conversation(title=names[0], session_id="everything", overrides=SMALL).conversation_id
    say(conversation_id, *_said(words, turn))
    summary_id = _summarized(conversation_id, words)
    files = [
        LargeFileService.from_settings(scope).store(
            conversation_id=conversation_id, content=text.encode("utf-8", "surrogatepass"), file_name=name
        )
        for text, name in zip(words.texts(len(names)), names, strict=True)
    ]
    _let_in(scope, names, usernames, conversation_id)
    told = " ".join(strings).replace("\0", "")[:MOST_TYPED]
    return Furnished(
        conversation_id=conversation_id,
        summary_id=summary_id,
        file_id=files[0].file_id,
        told=told,
        plan_id=CompactionPlans.from_settings(scope).plan(conversation_id=conversation_id).plan_id,
        **_compacted(scope, conversation_id, turn),
        **_checked(scope, conversation_id, turn),
        map_runs=furnish_map_runs(scope, conversation_id, storable(" ".join(names)), words.texts(3)),
        past=furnish_past(scope, told, [f"{FILLER}{text}" for text in words.texts(3)]),
    )


def _said(words: Words, turn: Callable[[], str]) -> list[NewMessage]:
    """Forty messages for the summaries; then everything again, as each kind of part, with names and metadata."""
    texts = words.texts(40)
    early = [NewMessage(Role.USER, f"{FILLER}\n{text}", author=turn()) for n, text in enumerate(texts)]
    late = []
    for n, text in enumerate(words.texts(8)):
        call = NewPart(PartType.TOOL, tool_call_id=f"call {n}", tool_name=turn(), tool_input={text: [text]})
        result = NewPart(
            PartType.TOOL, tool_call_id=f"call {n}", tool_output=text, tool_status=turn(), tool_title=turn()
        )
        parts = (
            NewPart(PartType.TEXT, text_content=text),
            NewPart(PartType.REASONING, text_content=text),
            NewPart(PartType.PATCH, text_content=f"--- a\n+++ b\n@@ -1 +1 @@\n-{text}\n+{text}", patch_files=(turn(),)),
            NewPart(PartType.FILE, file_name=turn(), file_mime=turn(), file_url=turn()),
            NewPart(PartType.SUBTASK, subtask_prompt=text, subtask_desc=text, subtask_agent=turn()),
        )
        late += [
            NewMessage(Role.ASSISTANT, parts=parts, author=turn(), metadata={turn(): text}),
            NewMessage(Role.ASSISTANT, parts=(call,)),
            NewMessage(Role.TOOL, parts=(result,)),
        ]
    return [*early, *late]


def _summarized(conversation_id: int, words: Words) -> str:
    """Leaves that say it all, too, and what was made from them; its id."""
    store = a_store()
    leaves = [
        a_summary_of(store, conversation_id, seqs=range(first, first + 6), content=f"{FILLER}\n{storable(text)}")
        for first, text in zip((1, 7, 13, 19), words.texts(4), strict=True)
    ]
    top = a_summary_of(store, conversation_id, summaries=leaves, content=storable("\n".join(words.strings)))
    return top.summary_id


def _compacted(scope: Scope, conversation_id: int, turn: Callable[[], str]) -> dict[str, Any]:
    """A run and a job, boundaries of hosts, a model that does not answer; two receipts of contexts."""
    HostCompaction.from_settings(scope).record_boundary(
        conversation_id=conversation_id, host_reference=turn(), last_seq=10, metadata={turn(): turn()}
    )
    engine = CompactionEngine.from_settings(scope)
    run = engine.compact(conversation_id=conversation_id)
    job = engine.request(conversation_id=conversation_id)
    ModelEndpoint.objects.create(name=turn(), consecutive_failures=3, last_failure=turn())
    assembler = ContextAssembler.from_settings(scope)
    first, second = (
        assembler.assemble(conversation_id=conversation_id, budget=budget, query=turn(), keep_receipt=True).receipt_id
        for budget in (2_000, 9_000)
    )
    assert first is not None and second is not None
    return {"run_id": run.run_id, "job_id": job.job_id, "receipts": (first, second)}


def _checked(scope: Scope, conversation_id: int, turn: Callable[[], str]) -> dict[str, Any]:
    """Something withheld, something erased, something damaged; the report of that, and a plan with open steps."""
    store = a_store()
    withheld = store.list_messages(conversation_id=conversation_id, limit=1)[0]
    Quarantines.from_settings(scope).quarantine(id=withheld.id, reason=turn())
    erasures = Erasures.from_settings(scope)
    gone = a_conversation(turn(), turn(), title=turn())
    preview = erasures.preview_erasure(conversation_id=gone.conversation_id, from_seq=1, to_seq=1)
    erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)
    with transaction.atomic():
        breaking("UPDATE messages SET content = %s WHERE conversation_id = %s AND seq = 30", turn(), conversation_id)
        breaking("UPDATE conversations SET total_tokens = total_tokens + 7 WHERE conversation_id = %s", conversation_id)
    checker = IntegrityChecker.from_settings(scope)
    report = checker.run()
    plan = checker.plan_repairs(report_id=report.report_id)
    Repairs(scope).approve_steps(repair_id=plan.repair_id, ordinals=[plan.steps[0].ordinal])
    return {
        "message_id": withheld.id,
        "report_id": report.report_id,
        "code": report.broken[0].code,
        "repair_id": plan.repair_id,
        "scan_id": checker.request(conversation_id=conversation_id).scan_id,
    }


def _let_in(scope: Scope, names: Sequence[str], usernames: Sequence[str], conversation_id: int) -> None:
    """People, keys, other workspaces, and leave to read."""
    users.add(scope, username="ann", role=Standing.ADMIN, password=PASSWORD)
    get_user_model().objects.create_superuser("sue", password=PASSWORD)
    for username in usernames:
        users.add(scope, username=username, role=Standing.READER, password=PASSWORD)
    for name in names:
        readable = "".join(letter for letter in name if letter.isprintable())[:LONGEST_KEY_NAME]
        keys.issue(workspace_id=a_workspace().pk, name=readable, by=scope)
    for other in (BARE, *(name.replace("/", "") for name in names[:2])):
        users.set_role(Scope(a_workspace(other).pk), username="ann", role=Standing.READER)
    for name in names:
        Delegation.from_settings(scope).expand_query(question=f"The harbour? {name}", conversation_id=conversation_id)


def furnished_in(words: Sequence[str]) -> Any:
    """The fixture of a module whose tests look at one of these: committed, and with its files for all of them.

    It is made before there is a browser, which keeps this thread from asking a database; and in no transaction of a
    test's own, where there would be savepoints to count.
    """

    @pytest.fixture(scope="module")
    def furnished(
        django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Furnished]:
        files = tmp_path_factory.mktemp("files")
        quickly = {"PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"]}
        with committed(django_db_blocker), override_settings(MEDIA_ROOT=files, **quickly):
            made = furnish(words)
            # So that the statistics of lexemes can be cached, as on a site that has run for a while.
            execute("ANALYZE")
            yield made

    return furnished
