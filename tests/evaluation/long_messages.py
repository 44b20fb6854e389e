"""How well grep finds where messages are long: goal 13, on chats of BEAM, beside SQLite FTS5 with any word, by BM25.

A person writes a line, an assistant writes a page, for 100,000 or 500,000 tokens. The questions are of nine kinds and
used word for word; what they should find are the messages that hold the answer. Each chat is searched by itself. The
interval is where 95 of 100 means lie if the chats are drawn anew, and the questions of a chat with it.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conversations.models import Message, Workspace
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from retrieval.types import GrepScope
from tests.conversations.real_data import DATA, rows_of
from tests.evaluation.figures import Figure, interval
from tests.evaluation.retrieval import new_message

WORKSPACE = "evaluation of long messages"
# By size of the chats: the goal for the first ten.
GOALS = {"100K": 0.54, "500K": 0.53}
GOAL_OF_TWENTY = 0.62
# By budget: how much of the evidence is to be in a context of the 100K chats, as it was written.
CONTEXTS = {4_000: 0.40, 16_000: 0.66}

Search = Callable[[str, int, int], list[int]]


@dataclass(frozen=True)
class Question:
    text: str
    chat: str
    kind: str
    conversation_id: int
    answers: frozenset[int]

    @property
    def size(self) -> str:
        return self.chat.split("_")[0]


def figures() -> Iterator[Figure]:
    """Goal 13: ours, then the peer's. None without the chats."""
    if not (DATA / "beam").is_dir():
        return
    scope = Scope(Workspace.objects.get_or_create(name=WORKSPACE)[0].pk)
    questions = list(stored_questions(scope))
    engine = RetrievalEngine.from_settings(scope)

    def ours(text: str, conversation_id: int, limit: int) -> list[int]:
        result = engine.grep(query=text, scope=GrepScope.MESSAGES, conversation_id=conversation_id, limit=limit)
        return [int(match.id.removeprefix("msg_")) for match in result.matches]

    searches: Mapping[str, Search] = {"lcm": ours, "FTS5, any word, BM25": _AnyWord().search}
    for method, search in searches.items():
        found = {each: search(each.text, each.conversation_id, 20) for each in questions}
        is_ours = method == "lcm"
        for size, goal in GOALS.items():
            of_size = [each for each in questions if each.size == size]
            yield _figure(f"chats of {size} tokens: R@10", method, of_size, found, 10, goal if is_ours else None)
        goal_of_all = GOAL_OF_TWENTY if is_ours else None
        yield _figure("all chats: R@20", method, questions, found, 20, goal_of_all)
        for kind in sorted({each.kind for each in questions}):
            of_kind = [each for each in questions if each.kind == kind]
            yield _figure(f"{kind.replace('_', ' ')}: R@10", method, of_kind, found, 10, None)
    assembler = ContextAssembler.from_settings(scope)
    small = [each for each in questions if each.size == "100K"]
    for budget, goal in CONTEXTS.items():
        shown = {each: _in_context(assembler, each, budget) for each in small}
        yield _figure(f"context of {budget:,} tokens: evidence in it", "lcm", small, shown, None, goal)


def _figure(
    measure: str,
    method: str,
    questions: Sequence[Question],
    found: Mapping[Question, Sequence[int]],
    first: int | None,
    goal: float | None,
) -> Figure:
    by_chat: dict[str, list[float]] = defaultdict(list)
    for each in questions:
        by_chat[each.chat].append(len(each.answers.intersection(found[each][:first])) / len(each.answers))
    shares = [share for shares in by_chat.values() for share in shares]
    value = sum(shares) / max(1, len(shares))
    return Figure(13, measure, method, value, goal, interval(list(by_chat.values()), random.Random(7)))


def chats() -> list[str]:
    """The names of all chats, by size and number."""
    return [
        file.name.removeprefix("beam_").removesuffix(".jsonl.gz") for file in sorted((DATA / "beam").glob("beam_*"))
    ]


def stored_questions(scope: Scope, *, of: Sequence[str] | None = None) -> Iterator[Question]:
    """The questions, with the chats stored: all of them, or those of these names."""
    store = ConversationStore.from_settings(scope)
    conversations: dict[str, int] = {}
    messages: dict[tuple[str, str], int] = {}
    for chat in chats() if of is None else of:
        turns = list(rows_of(DATA / "beam" / f"beam_{chat}.jsonl.gz"))
        conversations[chat] = store.open_conversation(session_id=chat).conversation_id
        for start in range(0, len(turns), 500):
            batch = turns[start : start + 500]
            appended = store.append_messages(
                conversation_id=conversations[chat], messages=[new_message(row) for row in batch]
            )
            for row, message in zip(batch, appended.messages, strict=True):
                messages[chat, str(row["meta"]["dia_id"])] = message.message_id
    with gzip.open(DATA / "beam" / "questions.json.gz", "rt") as file:
        for row in json.load(file):
            chat = row["conv"]
            if chat not in conversations:
                continue
            answers = frozenset(messages[chat, str(each)] for each in row["evidence"] if (chat, str(each)) in messages)
            if answers:
                yield Question(row["question"], chat, row["kind"], conversations[chat], answers)


def _in_context(assembler: ContextAssembler, question: Question, budget: int) -> list[int]:
    context = assembler.assemble(conversation_id=question.conversation_id, budget=budget, query=question.text)
    return [int(item.id.removeprefix("msg_")) for item in context.items if item.id.startswith("msg_")]


@dataclass
class _AnyWord:
    """The same messages in SQLite FTS5, one index a chat: any of the words, the best first by BM25."""

    indexes: dict[int, sqlite3.Connection] = field(default_factory=dict)

    def search(self, text: str, conversation_id: int, limit: int) -> list[int]:
        words = "".join(each if each.isalnum() else " " for each in text).split()
        found = self._index(conversation_id).execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?",
            [" OR ".join(f'"{word}"' for word in words), limit],
        )
        return [row[0] for row in found]

    def _index(self, conversation_id: int) -> sqlite3.Connection:
        if conversation_id not in self.indexes:
            index = sqlite3.connect(":memory:")
            index.execute("CREATE VIRTUAL TABLE texts USING fts5(content, tokenize = 'porter unicode61')")
            texts = Message.objects.filter(conversation_id=conversation_id).values_list("pk", "content")
            index.executemany("INSERT INTO texts (rowid, content) VALUES (?, ?)", texts)
            self.indexes[conversation_id] = index
        return self.indexes[conversation_id]
