"""What compaction saves, and that it loses nothing: goals 10 and 11, on every conversation of ../shared/data.

Each conversation is imported and compacted twice: as an operator would have it, and with settings that force summaries
of summaries of summaries. Then it is assembled within several budgets, every token counted again, and opened from its
roots by cursors until the last byte is out, which is compared with what was imported.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from compaction.engine import CompactionEngine
from conversations.content.flattening import flattened
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.formats.neutral import from_neutral
from conversations.models import Workspace
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.types import ContextItemType, MessageRecord, NewMessage, NewPart, PartRecord, PartType
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext
from retrieval.engine import RetrievalEngine
from retrieval.slices import joined
from tests.conversations.real_data import conversation_files, rows_of
from tests.evaluation.figures import Figure
from tests.tables import in_columns

# Shorter ones are not judged by what is saved: their fresh tail is most of them.
LONG_ENOUGH = 60
FRESH_TAIL = 8
BUDGETS = (1_000, 2_000, 4_000, 8_000, 32_000, 128_000)

# What is said in a message: its text, and the values of its parts by column.
Said = tuple[str, tuple[dict[str, Any], ...]]


@dataclass(frozen=True)
class Saving:
    """What came of one conversation."""

    name: str
    messages: int
    raw_tokens: int
    assembled_tokens: int
    depth: int
    deepest: int
    is_tail_intact: bool
    # Budgets that an answer was above by a real recount, without having said so.
    budgets_broken: tuple[int, ...]
    lost: int

    @property
    def reduction(self) -> float:
        return 1 - self.assembled_tokens / self.raw_tokens


def figures() -> Iterator[Figure]:
    """Goals 10 and 11; nothing if there are no conversations."""
    found = savings()
    judged = [saving for saving in found if saving.messages >= LONG_ENOUGH]
    if not judged:
        return
    kept = f"tokens saved, of {len(judged)} conversations of {LONG_ENOUGH} messages or more"
    yield Figure(10, f"{kept}: median", "lcm", statistics.median(saving.reduction for saving in judged), 0.7)
    yield Figure(10, f"{kept}: least", "lcm", min(saving.reduction for saving in judged), 0.3)
    yield Figure(10, "fresh tails intact, of all", "lcm", _share(saving.is_tail_intact for saving in found), 1.0)
    within = _share(not saving.budgets_broken for saving in found)
    yield Figure(10, "never above a budget by recount, of all", "lcm", within, 1.0)
    deep = [saving for saving in judged if saving.deepest >= 3]
    yield Figure(11, f"lossless at any depth, 3 and more in {len(deep)}", "lcm", _share(not s.lost for s in found), 1.0)


def table() -> str:
    """Every conversation with what came of it."""
    headings = (
        "conversation",
        "messages",
        "raw tokens",
        "assembled",
        "saved",
        "depth",
        "forced",
        "tail",
        "budgets",
        "lost",
    )
    rows = [
        (
            saving.name,
            str(saving.messages),
            f"{saving.raw_tokens:,}",
            f"{saving.assembled_tokens:,}",
            f"{saving.reduction:.0%}",
            str(saving.depth),
            str(saving.deepest),
            "whole" if saving.is_tail_intact else "TORN",
            "kept" if not saving.budgets_broken else f"BROKEN: {saving.budgets_broken}",
            "nothing" if not saving.lost else f"{saving.lost} MESSAGES",
        )
        for saving in savings()
    ]
    return in_columns([headings, *rows], to_the_right={1, 2, 3, 4, 5, 6})


def _share(answers: Iterator[bool]) -> float:
    return statistics.fmean(answers)


@cache
def savings() -> list[Saving]:
    return [_saving(file) for file in conversation_files()]


def _saving(file: Path) -> Saving:
    name = file.name.removesuffix(".jsonl.gz")
    given = [from_neutral(row) for row in rows_of(file)]
    store, plain = _imported(name, given)
    raw_tokens = store.get_conversation(conversation_id=plain).counters.active_tokens
    _, deep = _imported(f"{name}, deep", given, **_forcing_depth(raw_tokens))
    engine = CompactionEngine.from_settings(store.scope)
    for conversation_id in (plain, deep):
        engine.compact(conversation_id=conversation_id)
    assembler = ContextAssembler.from_settings(store.scope)
    contexts = {budget: assembler.assemble(conversation_id=plain, budget=budget) for budget in BUDGETS}
    expected = [_given(message) for message in given]
    return Saving(
        name=name,
        messages=len(given),
        raw_tokens=raw_tokens,
        assembled_tokens=contexts[max(BUDGETS)].total_tokens,
        depth=_depth(store, plain),
        deepest=_depth(store, deep),
        is_tail_intact=all(_has_tail(context, expected) for context in contexts.values()),
        budgets_broken=tuple(budget for budget, context in contexts.items() if _is_above(context, store)),
        lost=sum(_differing(expected, _opened(store, conversation_id)) for conversation_id in (plain, deep)),
    )


def _imported(name: str, messages: Sequence[NewMessage], **overrides: Any) -> tuple[ConversationStore, int]:
    store = ConversationStore.from_settings(Scope(Workspace.objects.get_or_create(name="evaluation")[0].pk))
    conversation = store.open_conversation(session_id=name, overrides={"autocompact_disabled": True, **overrides})
    remaining = iter(messages)
    while batch := list(islice(remaining, store.policy.max_batch_messages)):
        store.append_messages(conversation_id=conversation.conversation_id, messages=batch)
    return store, conversation.conversation_id


def _forcing_depth(raw_tokens: int) -> dict[str, int]:
    """Settings under which eight leaves, and so depth 3, come of any history that is not too short for them."""
    return {
        "fresh_tail_count": 1,
        "leaf_chunk_tokens": max(400, raw_tokens // 20),
        "leaf_target_tokens": 150,
        "condensed_target_tokens": 120,
        "condense_fan_in": 2,
    }


def _depth(store: ConversationStore, conversation_id: int) -> int:
    """The depth of the deepest summary in the context; -1 if there is none."""
    items = store.get_context_items(conversation_id=conversation_id)
    return max((store.get_summary(summary_id=item.summary_id).depth for item in items if item.summary_id), default=-1)


def _has_tail(context: AssembledContext, expected: Sequence[Said]) -> bool:
    """Whether the newest messages stand at the end of the context word for word."""
    tail = [(item.text, _values(item.parts)) for item in context.items if item.kind is ContextItemType.MESSAGE]
    return tail[-FRESH_TAIL:] == list(expected[-FRESH_TAIL:])


def _is_above(context: AssembledContext, store: ConversationStore) -> bool:
    tokens = sum(store.tokens.count(item.text) + MESSAGE_OVERHEAD_TOKENS for item in context.items)
    return tokens > context.budget and not context.over_budget


def _opened(store: ConversationStore, conversation_id: int) -> list[Said]:
    """Every message in order: those below the roots of the context by expansion, the others as they stand in it."""
    engine = RetrievalEngine.from_settings(store.scope)
    said: dict[int, Said] = {}
    for item in store.get_context_items(conversation_id=conversation_id):
        if item.message_id is not None:
            message = store.get_message(message_id=item.message_id)
            said[message.seq] = _stored(message)
            continue
        for each in joined(_pages(engine, item.summary_id or "")):
            # Lossless and once: a message that came twice counts as lost.
            said[each.seq] = ("", ()) if each.seq in said else (each.content, _values(each.parts))
    return [said[seq] for seq in sorted(said)]


def _pages(engine: RetrievalEngine, summary_id: str) -> Iterator[Any]:
    cursor = None
    while True:
        page = engine.expand(summary_id=summary_id, depth=-1, include_messages=True, cursor=cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def _differing(expected: Sequence[Said], found: Sequence[Said]) -> int:
    different = sum(one != other for one, other in zip(expected, found, strict=False))
    return different + abs(len(expected) - len(found))


def _given(message: NewMessage) -> Said:
    return (flattened(message.parts) if message.content is None else message.content, _values(message.parts))


def _stored(message: MessageRecord) -> Said:
    return (message.content, _values(message.parts))


def _values(parts: Sequence[NewPart | PartRecord]) -> tuple[dict[str, Any], ...]:
    """The parts as they were given: without their places, and without the marks that compaction has left."""
    return tuple(
        {name: getattr(part, name) for name in NewPart.__dataclass_fields__}
        for part in parts
        if not (part.part_type is PartType.COMPACTION and part.is_synthetic)
    )
