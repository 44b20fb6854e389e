"""Where everything is that `furnished` has made: every address that can be asked for, with something to show there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

_OF_WORKSPACE = (
    "overview", "conversations", "search", "runs", "files", "integrity", "quarantine", "retention", "erasures",
    "grants", "keys", "members", "workspaces", "settings", "audit", "import",
)  # fmt: skip
_OF_CONVERSATION = (
    "transcript", "lineage", "inspector", "conversation-runs", "plans", "conversation-files", "conversation-trust",
    "choose-erasure",
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
    told: str

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
        yield "plan", self._address("plan", conversation_id=self.conversation_id, plan_id=self.plan_id)
        yield "message", self._address("message", message_id=self.message_id)
        yield "file", self._address("file", file_id=self.file_id)
        yield "report", self._address("report", report_id=self.report_id)
        yield "report", self._address("report", report_id=self.report_id, code=self.code)
        yield "repairs", self._address("repairs", repair_id=self.repair_id)
        yield "scan", self._address("scan", scan_id=self.scan_id)

    def pages_of_the_site(self) -> Iterator[tuple[str, str]]:
        """Every page that superusers alone may open."""
        yield "models", self._address("models")

    def pieces(self) -> Iterator[tuple[str, str]]:
        """What a script on those pages asks for afterwards."""
        here: Mapping[str, Any] = {"conversation_id": self.conversation_id}
        first, second = self.receipts
        for name in ("pulse", "shelf", "jobs", "storage"):
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
