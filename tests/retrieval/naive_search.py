"""Random conversations, random questions, and the plainest way to answer them: look at everything, then sort.

Nothing here uses the search. The words are such that English stemming leaves each of them as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from django.db import connection
from django.utils.timezone import now
from hypothesis import strategies as st

from conversations.files.large_files import LargeFileService
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role, SummaryRecord
from retrieval.types import ItemKind
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.summaries import a_summary_of

# From the most common to the rarest.
WORDS = ("boat", "red", "sail", "anchor", "rope", "tide", "lamp", "crab", "fjord", "zebra")
# Compound tokens are found by all of their parts, too.
PARTS = {"openHarbour": {"open", "harbour"}, "lib/harbour.py": {"lib", "harbour", "py"}}
NOWHERE = "quartz"
MORNING = datetime.fromisoformat("2026-03-01T09:00:00+00:00")
_MESSAGES = """
    SELECT 'msg_' || message_id, content, seq, message_id, created_at FROM messages
    WHERE conversation_id = %(id)s ORDER BY seq
"""
_FILES = """
    SELECT file_id, coalesce(file_name, '') || E'\\n' || coalesce(exploration_summary, ''),
           coalesce(before.seq, 0), coalesce(before.message_id, 0), file.created_at
    FROM large_files AS file LEFT JOIN LATERAL (
        SELECT max(seq) AS seq, max(message_id) AS message_id FROM messages
        WHERE messages.conversation_id = file.conversation_id AND recorded_at <= file.created_at
    ) AS before ON true
    WHERE file.conversation_id = %(id)s
"""


@dataclass(frozen=True)
class Item:
    """A message, summary or file with everything that a search may ask of it."""

    id: str
    kind: ItemKind
    conversation_id: int
    text: str
    first_seq: int
    last_seq: int
    # The id of the last message that it stands for: the order among several conversations.
    message_id: int
    earliest: datetime
    latest: datetime
    role: Role | None = None
    part_types: frozenset[PartType] = frozenset()
    tools: frozenset[str] = frozenset()
    depth: int | None = None
    # The summaries that it is a source of, at any distance.
    above: frozenset[str] = frozenset()

    @property
    def words(self) -> set[str]:
        tokens = re.findall(r"[a-z]+", self.text.lower()) if self.kind is ItemKind.FILE else self.text.split()
        return {word for token in tokens for word in (token, *PARTS.get(token, ()))}

    def place(self, *, among_several: bool) -> tuple[int, int]:
        """Where it stands by when it came: a message first, then what ends with it, the widest first, then files."""
        rank = {ItemKind.MESSAGE: 10**6, ItemKind.FILE: -1}.get(self.kind, self.depth or 0)
        return (self.message_id if among_several else self.last_seq, rank)


class Term(NamedTuple):
    """A word, or several in a row."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.words[0] if len(self.words) == 1 else f'"{" ".join(self.words)}"'

    @property
    def is_phrase(self) -> bool:
        return len(self.words) > 1

    def is_in(self, item: Item) -> bool:
        if self.is_phrase:
            return f" {' '.join(self.words)} " in f" {' '.join(item.text.split())} "
        held = item.words
        parts = PARTS.get(self.words[0])
        return self.words[0] in held or (parts is not None and parts <= held)


@dataclass(frozen=True)
class Question:
    """All clauses hold, each by one of its terms, and nothing excluded."""

    clauses: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...] = ()

    @property
    def text(self) -> str:
        return " ".join(
            [*(" or ".join(map(str, each)) for each in self.clauses), *(f"-{each}" for each in self.excluded)]
        )

    @property
    def has_phrase(self) -> bool:
        return any(term.is_phrase for clause in (*self.clauses, self.excluded) for term in clause)

    def loosened(self) -> Question:
        """With each word of a phrase as a clause of its own."""
        terms = [term for clause in self.clauses for term in clause]
        if not any(term.is_phrase for term in terms):
            return self
        return Question(tuple((Term((word,)),) for term in terms for word in term.words), self.excluded)

    def answers(self, items: Sequence[Item]) -> list[Item]:
        """Those that hold all; if there are none, any word, but every phrase; then the same without phrases."""
        allowed = [item for item in items if not any(term.is_in(item) for term in self.excluded)]
        for reading in dict.fromkeys((self, self.loosened())):
            everything = [item for item in allowed if all(_holds(clause, item) for clause in reading.clauses)]
            if everything:
                return everything
            phrases = [clause for clause in reading.clauses if any(term.is_phrase for term in clause)]
            words = {word for clause in reading.clauses for term in clause for word in term.words}
            words |= {part for word in words for part in PARTS.get(word, ())}
            anything = [
                item for item in allowed if words & item.words and all(_holds(clause, item) for clause in phrases)
            ]
            if anything:
                return anything
        return []


def _holds(clause: Sequence[Term], item: Item) -> bool:
    return any(term.is_in(item) for term in clause)


@dataclass
class Corpus:
    """What was stored, as it is told by whoever stored it."""

    conversation_ids: list[int] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)

    def asked(self, criteria: Mapping[str, Any]) -> list[Item]:
        """The items that meet the criteria, each of them asked one by one."""
        return [item for item in self.items if _meets(item, criteria)]


_SCOPES = {
    "messages": {ItemKind.MESSAGE},
    "summaries": {ItemKind.SUMMARY},
    "both": {ItemKind.MESSAGE, ItemKind.SUMMARY},
    "files": {ItemKind.FILE},
    "all": set(ItemKind),
}


def _meets(item: Item, criteria: Mapping[str, Any]) -> bool:
    told = {
        "scope": lambda scope: item.kind in _SCOPES[scope],
        "conversation_id": lambda each: item.conversation_id == each,
        "conversation_ids": lambda several: item.conversation_id in several,
        "roles": lambda roles: item.role in roles,
        "part_types": lambda kinds: not item.part_types.isdisjoint(kinds),
        "tool_names": lambda names: not item.tools.isdisjoint(names),
        "since": lambda moment: item.latest >= moment,
        "until": lambda moment: item.earliest < moment,
        "from_seq": lambda seq: item.kind is not ItemKind.FILE and item.last_seq >= seq,
        "to_seq": lambda seq: item.kind is not ItemKind.FILE and item.first_seq <= seq,
        "depth": lambda depth: item.depth == depth,
        "under": lambda summary_id: summary_id in item.above,
    }
    return all(told[name](value) for name, value in criteria.items())


def a_corpus(seed: int, *, sizes: Sequence[int], batch: int = 7) -> Corpus:
    """Conversations of so many messages, said by turns, with summaries and files; the same for the same seed."""
    random = Random(seed)
    corpus = Corpus([a_conversation().conversation_id for _ in sizes])
    left = dict(zip(corpus.conversation_ids, sizes, strict=True))
    said: dict[int, list[NewMessage]] = {each: [] for each in left}
    while any(left.values()):
        conversation_id = random.choice([each for each, count in left.items() if count])
        count = min(left[conversation_id], random.randint(1, batch))
        messages = _messages(random, count, before=said[conversation_id])
        say(conversation_id, *messages)
        said[conversation_id] += messages
        left[conversation_id] -= count
        if random.random() < 0.03:
            _store_file(random, conversation_id)
    _store_file(random, random.choice(corpus.conversation_ids))
    for conversation_id in corpus.conversation_ids:
        corpus.items += _items(conversation_id, said[conversation_id])
        corpus.items += _summaries(random, conversation_id, len(said[conversation_id]), corpus.items)
    return corpus


def _text(random: Random, topic: int) -> str:
    """Common words everywhere, rare ones mostly together, as people speak."""
    tokens = [WORDS[min(int(random.expovariate(0.6)), len(WORDS) - 1)] for _ in range(random.randint(1, 6))]
    if random.random() < 0.3:
        tokens.append(WORDS[topic % len(WORDS)])
    if random.random() < 0.1:
        tokens.insert(random.randint(0, len(tokens)), random.choice(list(PARTS)))
    return " ".join(tokens)


def _messages(random: Random, count: int, *, before: Sequence[NewMessage]) -> list[NewMessage]:
    messages: list[NewMessage] = []
    for seq in range(len(before), len(before) + count):
        text = _text(random, seq // 40)
        moment = MORNING + timedelta(minutes=random.randint(seq - 3, seq + 3))
        kind = random.random()
        if kind < 0.1:
            call = NewPart(PartType.TOOL, tool_call_id=f"c{seq}", tool_name=random.choice(("paint", "varnish")))
            messages.append(NewMessage(Role.ASSISTANT, text, parts=(call,), created_at=moment))
        elif kind < 0.2 and messages and messages[-1].parts and messages[-1].parts[0].tool_call_id:
            result = NewPart(PartType.TOOL, tool_call_id=messages[-1].parts[0].tool_call_id, tool_output=text)
            messages.append(NewMessage(Role.TOOL, text, parts=(result,), created_at=moment))
        elif kind < 0.3:
            parts = (NewPart(PartType.REASONING, text_content=text),)
            messages.append(NewMessage(Role.ASSISTANT, text, parts=parts, created_at=moment))
        else:
            messages.append(NewMessage(random.choice((Role.USER, Role.ASSISTANT)), text, created_at=moment))
    return messages


def _store_file(random: Random, conversation_id: int) -> None:
    files = LargeFileService.from_settings(Scope(a_workspace().pk))
    words = random.sample(WORDS, 2)
    files.store(conversation_id=conversation_id, content=" ".join(words).encode(), file_name=f"{words[0]}.txt")


def _items(conversation_id: int, said: Sequence[NewMessage]) -> Iterator[Item]:
    """What was said, and the files, as they are stored."""
    called = {part.tool_call_id: part.tool_name for each in said for part in each.parts if part.tool_name}
    with connection.cursor() as cursor:
        cursor.execute(_MESSAGES, {"id": conversation_id})
        for each, (id, text, seq, message_id, moment) in zip(said, cursor.fetchall(), strict=True):
            tools = {part.tool_name or called.get(part.tool_call_id) for part in each.parts}
            yield Item(
                id, ItemKind.MESSAGE, conversation_id, text, seq, seq, message_id, moment, moment,
                role=each.role,
                part_types=frozenset(part.part_type for part in each.parts),
                tools=frozenset(filter(None, tools)),
            )  # fmt: skip
        cursor.execute(_FILES, {"id": conversation_id})
        for id, text, seq, message_id, moment in cursor.fetchall():
            yield Item(id, ItemKind.FILE, conversation_id, text, seq, seq, message_id, moment, moment)


def _summaries(random: Random, conversation_id: int, size: int, items: list[Item]) -> list[Item]:
    """A few summaries of the first messages, and one of the first of these; their sources learn of them."""
    store = a_store()
    messages = {
        item.first_seq: place
        for place, item in enumerate(items)
        if item.conversation_id == conversation_id and item.kind is ItemKind.MESSAGE
    }
    made: list[Item] = []

    def item_of(record: SummaryRecord, above: frozenset[str] = frozenset()) -> Item:
        return Item(
            record.summary_id, ItemKind.SUMMARY, conversation_id, record.content, record.first_seq, record.last_seq,
            items[messages[record.last_seq]].message_id, record.earliest_at, record.latest_at,
            depth=record.depth, above=above,
        )  # fmt: skip

    leaves, first = [], 1
    for _ in range(random.randint(0, 3)):
        last = first + random.randint(1, 4)
        if last > size:
            break
        leaves.append(a_summary_of(store, conversation_id, seqs=range(first, last + 1), content=_text(random, first)))
        first = last + 1
    root = a_summary_of(store, conversation_id, summaries=leaves[:2], content=_text(random, 0)) if leaves[1:] else None
    for leaf in leaves:
        above = frozenset([root.summary_id]) if root is not None and leaf in leaves[:2] else frozenset()
        made.append(item_of(leaf, above))
        for seq in range(leaf.first_seq, leaf.last_seq + 1):
            items[messages[seq]] = replace(items[messages[seq]], above=above | {leaf.summary_id})
    return [*made, *([item_of(root)] if root is not None else [])]


_words = st.sampled_from([*WORDS, *PARTS, "harbour", NOWHERE])
_phrases = st.lists(st.sampled_from(WORDS), min_size=2, max_size=2).map(tuple)
_terms = st.one_of(_words.map(lambda word: (word,)), _words.map(lambda word: (word,)), _phrases).map(Term)
_excluded = st.one_of(st.sampled_from(WORDS).map(lambda word: (word,)), _phrases).map(Term)


questions = st.builds(
    Question,
    st.lists(st.lists(_terms, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3).map(tuple),
    st.lists(_excluded, max_size=1).map(tuple),
)


@st.composite
def criteria_for(draw: Any, corpus: Corpus) -> dict[str, Any]:
    """What a search of this corpus may be narrowed to, in one conversation, in several, or in all of them."""
    criteria: dict[str, Any] = {"scope": draw(st.sampled_from(list(_SCOPES)))}
    where = draw(st.sampled_from(("one", "one", "several", "all")))
    bounds: dict[str, int] = {}
    if where == "one":
        criteria["conversation_id"] = draw(st.sampled_from(corpus.conversation_ids))
        last = max(item.last_seq for item in corpus.items if item.conversation_id == criteria["conversation_id"])
        low, high = sorted(draw(st.tuples(*[st.integers(1, last + 2)] * 2)))
        bounds = {"from_seq": low, "to_seq": high}
    elif where == "several":
        criteria["conversation_ids"] = corpus.conversation_ids[: draw(st.integers(2, len(corpus.conversation_ids)))]
    minutes = st.integers(-5, max(item.last_seq for item in corpus.items) + 5)
    since = MORNING + timedelta(minutes=draw(minutes))
    narrowing: list[dict[str, Any]] = [{}, {}, {"since": since}, {"until": since}, {"since": now()}]
    if criteria["scope"] in ("messages", "both", "all"):
        narrowing += [
            {"roles": draw(st.lists(st.sampled_from(list(Role)), min_size=1, max_size=2))},
            {"tool_names": draw(st.lists(st.sampled_from(("paint", "varnish", "none")), min_size=1, max_size=2))},
            {"part_types": ["tool"]},
            {"part_types": ["reasoning"], "since": since},
        ]
    if criteria["scope"] in ("summaries", "both", "all"):
        narrowing.append({"depth": draw(st.integers(0, 1))})
    if criteria["scope"] != "files":
        if bounds:
            narrowing += [bounds, {"from_seq": bounds["from_seq"]}, {"to_seq": bounds["to_seq"]}]
        summaries = [item for item in corpus.items if item.kind is ItemKind.SUMMARY]
        if where == "all" and summaries:
            narrowing.append({"under": draw(st.sampled_from(summaries)).id})
    return criteria | draw(st.sampled_from(narrowing))
