"""How well grep answers: goals 1 to 6, through the public engine, beside SQLite FTS5 as lossless-claw asks it.

LoCoMo's questions are used word for word; what they should find are the messages that hold the answer. The peer puts
each word in quotes, joins them with AND and gives the newest first (porter unicode61). All conversations of the data
lie in one workspace, so that "everywhere" is a mixed store, talk among agent sessions: goals 2 and 3 at once.
Identifiers are those of agent sessions that stand in at most three messages: as they are, as the last part of a path,
and as the words they are made of; and as people ask who do not look them up first, for which no goal was set. Lines, of
errors and of programs, are of the same sessions, pasted as they are.
"""

from __future__ import annotations

import math
import random
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from conversations.models import Message, Workspace
from conversations.scope import Scope
from conversations.sql import rows
from conversations.store.conversations import ConversationStore
from conversations.types import NewMessage, Role
from retrieval.engine import RetrievalEngine
from retrieval.types import GrepScope
from tests.conversations.real_data import conversation_files, rows_of
from tests.evaluation.figures import Figure, questions_of_locomo

WORKSPACE = "evaluation of retrieval"
DEPTH = 10
IDENTIFIERS_A_SESSION = 30
MOST_MESSAGES_OF_AN_IDENTIFIER = 3
# Each with its goal, if there is one.
CATEGORIES = {4: ("single-hop", 0.92), 1: ("multi-hop", 0.46), 2: ("temporal", 0.74)}
RARE = {
    "identifiers as they are": 0.98,
    "identifiers last part of a path": 0.88,
    "identifiers as words": 0.95,
    "identifiers in another style": None,
    "identifiers with a line": None,
    "identifiers in a question": None,
    "lines pasted": None,
}

Search = Callable[[str, int | None, int], list[int]]

_WORD = re.compile(r"\w+")
_TEXTS = "SELECT content_tsv FROM messages WHERE conversation_id = {}"
# Written apart from retrieval's own idea of an identifier, so that it cannot flatter it.
_IDENTIFIER = re.compile(
    r"""(?<![\w/.-])[\w@.-]*(?:/[\w@.-]+)+\.\w{1,5}\b
    | (?<![\w/.-])(?:[a-z0-9]+_)+[a-z0-9]+\b
    | \b[a-z]+(?:[A-Z][a-z0-9]+)+\b
    | \b(?:[A-Z][a-z0-9]+){2,}\b
    | (?<![\w/.-])[\w-]+\.(?:py|tsx?|jsx?|exs?|md|json|rs|go|sh|toml)\b""",
    re.VERBOSE,
)


_CODE = re.compile(r"[=({;]|Error|Exception|error:|fatal:|\.\w+:\d")


@dataclass(frozen=True)
class Query:
    """What is asked, where, and the messages that answer it."""

    text: str
    conversation_id: int
    answers: frozenset[int]
    category: int = 0
    # In words, where it is told.
    answer: str = ""


@dataclass
class Scores:
    """Sums over queries; `mean` makes figures of them."""

    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    queries: int = 0

    def add(self, query: Query, found: Sequence[int]) -> None:
        hits = [each in query.answers for each in found[:DEPTH]]
        gain = sum(1 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
        best = sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(query.answers))))
        self.queries += 1
        self.sums["R@10"] += sum(hits) / len(query.answers)
        self.sums["R@1"] += sum(hits[:1]) / len(query.answers)
        self.sums["nDCG@10"] += gain / best
        self.sums["with an answer"] += bool(found)

    def mean(self, measure: str) -> float:
        return self.sums[measure] / max(1, self.queries)


@dataclass
class Corpus:
    """The data in the store, by conversation; `of_dialogue` leads from a dialogue's turn to its message."""

    scope: Scope
    engine: RetrievalEngine
    conversations: dict[str, int]
    of_dialogue: dict[tuple[str, str], int]

    @classmethod
    def loaded(cls, workspace: str, *, named: str = "", overrides: Mapping[str, Any] | None = None) -> Corpus:
        """All conversations of the data whose names begin so, stored once in a workspace of their own."""
        scope = Scope(Workspace.objects.get_or_create(name=workspace)[0].pk)
        store = ConversationStore.from_settings(scope)
        conversations: dict[str, int] = {}
        of_dialogue: dict[tuple[str, str], int] = {}
        for file in conversation_files():
            name = file.name.removesuffix(".jsonl.gz")
            if not name.startswith(named):
                continue
            conversation = store.open_conversation(session_id=name, overrides=overrides)
            conversations[name] = conversation.conversation_id
            turns = list(rows_of(file))
            for start in range(0, len(turns), 1000):
                batch = turns[start : start + 1000]
                appended = store.append_messages(
                    conversation_id=conversation.conversation_id, messages=[new_message(row) for row in batch]
                )
                for row, message in zip(batch, appended.messages, strict=True):
                    if turn := (row.get("meta") or {}).get("dia_id"):
                        of_dialogue[name, turn] = message.message_id
        return cls(scope, RetrievalEngine.from_settings(scope), conversations, of_dialogue)

    def ours(self, text: str, conversation_id: int | None, limit: int) -> list[int]:
        result = self.engine.grep(query=text, scope=GrepScope.MESSAGES, conversation_id=conversation_id, limit=limit)
        return [int(match.id.removeprefix("msg_")) for match in result.matches]

    def questions(self) -> list[Query]:
        """LoCoMo's, but for the adversarial and those without evidence that could be found."""
        found = []
        for row, turns in questions_of_locomo():
            name = f"locomo_{row['conv']}"
            if name not in self.conversations:
                continue
            answers = frozenset(self.of_dialogue[name, turn] for turn in turns if (name, turn) in self.of_dialogue)
            if answers:
                conversation_id = self.conversations[name]
                found.append(Query(row["question"], conversation_id, answers, row["category"], str(row["answer"])))
        return found

    def sessions_of_agents(self) -> Iterator[tuple[int, dict[int, str]]]:
        """Each conversation with tools in it, and its texts by message."""
        for name, conversation_id in sorted(self.conversations.items()):
            if not name.startswith(("locomo", "lme")):
                texts = Message.objects.filter(conversation_id=conversation_id).values_list("message_id", "content")
                yield conversation_id, dict(texts)

    def lines(self) -> Iterator[Query]:
        """Queries for lines that few messages of their session hold, which look like code or like what it says."""
        return self._rare(_lines_of)

    def identifiers(self) -> Iterator[tuple[str, Query]]:
        """Queries for identifiers that few messages of their session hold, by the form they are asked in."""
        for query in self._rare(_identifiers_of):
            if len(query.answers) <= MOST_MESSAGES_OF_AN_IDENTIFIER:
                for form, text in _forms(query.text):
                    yield form, replace(query, text=text)

    def _rare(self, find: Callable[[str], Iterable[str]]) -> Iterator[Query]:
        """Queries for some of what is found in few messages of a session; the answers are all that hold it."""
        drawn = random.Random(7)
        for conversation_id, texts in self.sessions_of_agents():
            holders = Counter(each for text in texts.values() for each in set(find(text)))
            rare = sorted(each for each, count in holders.items() if count <= MOST_MESSAGES_OF_AN_IDENTIFIER)
            for each in drawn.sample(rare, min(IDENTIFIERS_A_SESSION, len(rare))):
                yield Query(each, conversation_id, frozenset(id for id, text in texts.items() if each in text))


def _lines_of(text: str) -> Iterator[str]:
    return (line for line in map(str.strip, text.splitlines()) if 15 < len(line) < 300 and _CODE.search(line))


def _identifiers_of(text: str) -> Iterator[str]:
    return (identifier for identifier in _IDENTIFIER.findall(text) if 5 <= len(identifier) <= 100)


@dataclass
class Peer:
    """The same messages in SQLite FTS5, one index a conversation and one of all."""

    indexes: dict[int | None, sqlite3.Connection] = field(default_factory=dict)

    def search(self, text: str, conversation_id: int | None, limit: int) -> list[int]:
        words = " ".join(f'"{word}"' for word in text.replace('"', " ").split())
        found = self._index(conversation_id).execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid DESC LIMIT ?", [words, limit]
        )
        return [row[0] for row in found]

    def _index(self, conversation_id: int | None) -> sqlite3.Connection:
        if conversation_id not in self.indexes:
            index = sqlite3.connect(":memory:")
            index.execute("CREATE VIRTUAL TABLE texts USING fts5(content, tokenize = 'porter unicode61')")
            messages = Message.objects.filter(conversation__workspace__name=WORKSPACE)
            if conversation_id is not None:
                messages = messages.filter(conversation_id=conversation_id)
            texts = messages.values_list("pk", "content")
            index.executemany("INSERT INTO texts (rowid, content) VALUES (?, ?)", texts)
            self.indexes[conversation_id] = index
        return self.indexes[conversation_id]


def figures() -> Iterator[Figure]:
    """Every goal that this file measures: ours, then the peer's. Needs an empty database to load the data into."""
    corpus = Corpus.loaded(WORKSPACE)
    questions = corpus.questions()
    rarest = _Rarest(questions)
    queries = {"lines pasted": list(corpus.lines())}
    for form, query in corpus.identifiers():
        queries.setdefault(f"identifiers {form}", []).append(query)
    searches: Mapping[str, Search] = {"lcm": corpus.ours, "FTS5, all words, newest": Peer().search}
    for method, search in searches.items():
        here, everywhere = _scored(questions, search), _scored(questions, search, everywhere=True)[0].mean("R@10")
        two = _scored([rarest.of(query, 2) for query in questions], search)
        found = [
            *(
                (1, f"questions, one conversation: {measure}", here[0].mean(measure), goal)
                for measure, goal in (("R@10", 0.78), ("R@1", 0.40), ("nDCG@10", 0.62))
            ),
            (1, "questions that get any answer", here[0].mean("with an answer"), 0.995),
            (2, "questions, everywhere: R@10", everywhere, 0.75),
            (3, "the same, as a mixed store: R@10", everywhere, 0.70),
            (4, "the two rarest words: R@10", two[0].mean("R@10"), 0.63),
            *((5, f"{name}: R@10", here[category].mean("R@10"), goal) for category, (name, goal) in CATEGORIES.items()),
            *(
                (6, f"{name}: R@10", _scored(queries[name], search)[0].mean("R@10"), goal)
                for name, goal in RARE.items()
            ),
        ]
        for number, measure, value, goal in found:
            # Goals are ours; a peer has none.
            yield Figure(number, measure, method, value, goal if method == "lcm" else None)


class _Rarest:
    """The words of a question whose lexemes stand in the fewest messages of its conversation; stop words have none."""

    def __init__(self, questions: Sequence[Query]) -> None:
        words = sorted({word for query in questions for word in _WORD.findall(query.text)})
        lexed = rows(
            "SELECT word, tsvector_to_array(to_tsvector('english', word)) FROM unnest(%s::text[]) AS word", [words]
        )
        self.lexeme = {word: lexemes[0] for word, lexemes in lexed if lexemes}
        self.holding = {
            conversation_id: dict(rows("SELECT word, ndoc FROM ts_stat(%s)", [_TEXTS.format(conversation_id)]))
            for conversation_id in {query.conversation_id for query in questions}
        }

    def of(self, query: Query, how_many: int) -> Query:
        holding = self.holding[query.conversation_id]
        messages = {word: holding.get(self.lexeme.get(word, ""), 0) for word in _WORD.findall(query.text)}
        rarest = sorted((word for word in messages if messages[word]), key=messages.__getitem__)[:how_many]
        return Query(" ".join(rarest) or query.text, query.conversation_id, query.answers, query.category)


def _scored(queries: Sequence[Query], search: Search, *, everywhere: bool = False) -> dict[int, Scores]:
    """The scores of all queries (under 0) and of each category."""
    scores: dict[int, Scores] = defaultdict(Scores)
    for query in queries:
        found = search(query.text, None if everywhere else query.conversation_id, DEPTH)
        for category in {0, query.category}:
            scores[category].add(query, found)
    return scores


def _forms(identifier: str) -> Iterator[tuple[str, str]]:
    yield "as they are", identifier
    if "/" in identifier:
        file = identifier.rsplit("/", 1)[1]
        yield "last part of a path", file
        yield "with a line", f"{file}:42"
        yield "in a question", f"Where did we change {file}?"
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", re.sub(r"[_/.@:-]+", " ", identifier))
    if len(spaced.split()) > 1:
        yield "as words", " ".join(spaced.lower().split())
        if identifier.isalnum() or identifier.replace("_", "").isalnum():
            camel, *capitals = spaced.lower().split()
            other = "_".join([camel, *capitals]) if identifier.isalnum() else camel + "".join(map(str.title, capitals))
            yield "in another style", other


def new_message(row: dict[str, Any]) -> NewMessage:
    """A row of the data as a message to be stored."""
    meta = row.get("meta") or {}
    said = datetime.fromisoformat(row["created_at"]) if row.get("created_at") else None
    return NewMessage(
        Role(row["role"]),
        row["content"],
        author=meta.get("speaker"),
        created_at=said.replace(tzinfo=said.tzinfo or UTC) if said else None,
    )
