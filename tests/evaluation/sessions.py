"""What a session recalls of those before it: goal 12, through the public assembler.

Each dialogue of LoCoMo, LongMemEval and BEAM is a project, each of its sessions a conversation with a summary by the
built-in summarizer; eight sessions make an arc. BEAM's chats name no sessions: there, twenty messages are one. A
question is asked at the start of the next session: does a recall of 2,000 tokens hold the summary of a session with its
evidence, uncut? Beside it, the summaries of the last sessions, as many as fit.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby, islice
from typing import Any, NamedTuple

from compaction.history.models import SessionSummary
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.summarizer import Source, SourceMessage, SourceSummary, SummaryRequest
from conversations.content.tokens import TokenEstimator
from conversations.models import Workspace
from conversations.scope import Scope
from retrieval.assembler import ContextAssembler
from tests.conversations.real_data import DATA, conversation_files, rows_of
from tests.evaluation.figures import Figure, questions_of_locomo
from tests.pasts import a_project, a_session, a_session_summary, a_summary_over

WORKSPACE = "evaluation of sessions"
ROOM, SESSION_TOKENS, ARC_TOKENS, SESSIONS_AN_ARC = 2_000, 600, 900, 8
# How many messages of a chat of BEAM are a session.
BEAM_SESSION = 20

# Of LoCoMo's questions, one in so many is asked.
ONE_IN = 5

Recall = Callable[[str, str], frozenset[str]]


class Question(NamedTuple):
    """A question to a project, and the sessions that hold its evidence."""

    project: str
    text: str
    sessions: frozenset[str]


def figures() -> Iterator[Figure]:
    """Goal 12: the share of the questions whose session is recalled."""
    workspace = Workspace.objects.get_or_create(name=WORKSPACE)[0]
    summaries: dict[tuple[str, str], str] = {}
    for file in (*conversation_files(), *sorted((DATA / "beam").glob("beam_*"))):
        name = file.name.removesuffix(".jsonl.gz")
        if name.startswith(("locomo", "lme", "beam")):
            summaries |= {(name, session): id for session, id in _remembered(name, list(rows_of(file)), workspace)}
    assembler = ContextAssembler.from_settings(Scope(workspace.pk))

    @cache
    def recalled(project: str, question: str | None) -> frozenset[str]:
        section = assembler.recall(project=project, query=question, budget=ROOM, share=1)
        return frozenset(section.past_ids).difference(section.past_cut_ids)

    @cache
    def last(project: str) -> frozenset[str]:
        return _last([id for (name, _), id in summaries.items() if name == project])

    ways: dict[str, Recall] = {
        "recall with the question": recalled,
        "recall without it": lambda project, _: recalled(project, None),
        "the last sessions, cut": lambda project, _: last(project),
    }
    asked = {"LongMemEval": list(_of_longmemeval()), "LoCoMo": list(_of_locomo()), "BEAM": list(_of_beam())}
    for dialogues, questions in asked.items():
        for method, recall in ways.items():
            shares = [
                bool({summaries.get((each.project, session)) for session in each.sessions} & recall(*each[:2]))
                for each in questions
            ]
            measure = f"{dialogues}: session of the answer in {ROOM:,} tokens, {len(shares)} questions"
            yield Figure(12, measure, method, sum(shares) / max(1, len(shares)))


def _remembered(name: str, turns: Sequence[dict[str, Any]], workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Store each session of a dialogue; the ids of their summaries."""
    project = a_project(name, workspace)
    made: list[SessionSummary] = []
    for session, rows in groupby(turns, key=_session_of):
        said = [row for row in rows if row["content"]]
        conversation = a_session(project, *(row["content"] for row in said), title=session)
        made.append(a_session_summary(conversation.conversation_id, _summary([*map(_message, said)], SESSION_TOKENS)))
        yield session, made[-1].pk
        if len(made) % SESSIONS_AN_ARC == 0:
            sources = [_source(each) for each in made[-SESSIONS_AN_ARC:]]
            a_summary_over(made[-SESSIONS_AN_ARC:], _summary(sources, ARC_TOKENS))


def _session_of(row: dict[str, Any]) -> str:
    meta = row["meta"]
    return str(meta["session"] if "session" in meta else int(meta["dia_id"]) // BEAM_SESSION)


def _message(row: dict[str, Any]) -> SourceMessage:
    return SourceMessage(source_id=f"msg_{row['seq']}", seq=row["seq"], role=row["role"], text=row["content"])


def _source(summary: SessionSummary) -> SourceSummary:
    return SourceSummary(source_id=summary.pk, depth=0, first_seq=1, last_seq=1, text=summary.content)


def _summary(sources: Sequence[Source], target: int) -> str:
    count = TokenEstimator.from_settings().count
    request = SummaryRequest(sources=tuple(sources), target_tokens=target, count_tokens=count)
    return ExtractiveSummarizer().summarize(request).text


def _last(ids: Sequence[str]) -> frozenset[str]:
    """Of these summaries of a project, the newest that fit into the room."""
    tokens = dict(SessionSummary.objects.filter(pk__in=ids).values_list("pk", "token_count"))
    room, found = ROOM, set()
    for id in reversed(ids):
        room -= tokens[id]
        if room < 0:
            break
        found.add(id)
    return frozenset(found)


def _of_locomo() -> Iterator[Question]:
    for row, turns in islice(questions_of_locomo(), 0, None, ONE_IN):
        sessions = frozenset(turn.removeprefix("D").partition(":")[0] for turn in turns)
        if sessions:
            yield Question(f"locomo_{row['conv']}", row["question"], sessions)


def _of_longmemeval() -> Iterator[Question]:
    with gzip.open(DATA / "longmemeval_questions.json.gz", "rt") as file:
        for row in json.load(file):
            yield Question(f"lme_{row['conv']}", row["question"], frozenset(map(str, row["sessions"])))


def _of_beam() -> Iterator[Question]:
    questions = DATA / "beam" / "questions.json.gz"
    if questions.is_file():
        with gzip.open(questions, "rt") as file:
            for row in json.load(file):
                sessions = frozenset(str(int(each) // BEAM_SESSION) for each in row["evidence"])
                if sessions:
                    yield Question(f"beam_{row['conv']}", row["question"], sessions)
