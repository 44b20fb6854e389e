"""A message cut into slices and put together again is the same message."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.content.flattening import flattened
from conversations.content.tokens import estimate
from conversations.types import NewPart, PartRecord, PartType, Role
from retrieval.expansion.expanded_items import sliced
from retrieval.slices import as_json, cost_of, prefix_within, slice_of, views
from retrieval.types import ExpandedItem, ItemKind
from tests.rejoining import from_json, joined, restored

TEXTS = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def parts_of(draw, *, most: int = 5):
    values = st.fixed_dictionaries(
        {"part_type": st.sampled_from(PartType)},
        optional={
            "text_content": TEXTS,
            "tool_call_id": TEXTS,
            "tool_name": TEXTS,
            "tool_input": JSON,
            "tool_output": TEXTS,
            "tool_error": TEXTS,
            "is_ignored": st.booleans(),
            "patch_files": st.lists(TEXTS, max_size=3).map(tuple),
            "step_cost": st.decimals(allow_nan=False, allow_infinity=False, places=4),
            "step_tokens_in": st.integers(0, 2**31 - 1),
            "metadata": JSON,
        },
    )
    rows = draw(st.lists(values, max_size=most))
    return tuple(
        PartRecord(**row, part_id=f"part_7_{ordinal}", message_id=7, ordinal=ordinal)
        for ordinal, row in enumerate(rows)
    )


def words(text: str) -> int:
    """A counter of tokens that is quick: four characters make one."""
    return -(-len(text) // 4)


def slices_of(content: str, parts_json: str, budget: int) -> list[ExpandedItem]:
    """A message as `expand` gives it when it never fits a page."""
    whole = ExpandedItem(
        id="msg_7",
        kind=ItemKind.MESSAGE,
        of="sum_1",
        level=1,
        first_seq=3,
        last_seq=3,
        tokens=0,
        content=content,
        created_at=datetime.now(UTC),
        role=Role.USER,
    )
    items = []
    content_offset = parts_offset = 0
    while True:
        piece = slice_of(
            content, parts_json, content_offset=content_offset, parts_offset=parts_offset, budget=budget, count=words
        )
        items.append(sliced(whole, piece, parts_total=len(parts_json)))
        if piece.is_last:
            return items
        content_offset += len(piece.content)
        parts_offset += len(piece.parts_json)


@given(parts_of(), TEXTS)
def test_parts_beside_a_content_are_restored_exactly(parts, more):
    content = flattened(parts) + more

    found = tuple(restored(part, message_id=7, content=content) for part in views(parts, content))

    assert found == parts


@given(parts_of())
def test_parts_survive_their_json(parts):
    content = flattened(parts)
    seen = views(parts, content)

    assert as_json(seen).isascii()
    assert from_json(as_json(seen)) == seen


@given(st.just(()) | parts_of(), st.booleans())
def test_what_parts_cost_is_known_without_their_json(parts, is_said):
    parts = tuple(replace(part, tool_output=(part.tool_output or "") + "x" * 30) for part in parts)
    seen = views(parts, flattened(parts) if is_said else "")

    assert cost_of(seen) == estimate(as_json(seen))


@given(parts_of(), TEXTS, st.integers(1, 20))
def test_slices_joined_are_the_message(parts, more, budget):
    content = flattened(parts) + more

    items = slices_of(content, as_json(views(parts, content)), budget)

    (message,) = joined(items)
    assert (message.content, message.parts, message.seq) == (content, parts, 3)
    assert all(item.tokens <= budget for item in items)
    assert all(item.content or item.parts_json for item in items) or len(items) == 1


def test_a_text_that_stands_in_the_content_is_not_said_again():
    text = "The whole tool output, which is long. " * 100
    parts = (PartRecord(PartType.TOOL, tool_output=text, part_id="part_7_0", message_id=7),)

    (part,) = views(parts, text)

    assert part.spans == {"tool_output": (0, len(text))}
    assert len(as_json((part,))) < 100


def test_tool_arguments_that_stand_in_the_content_are_not_said_again():
    part = NewPart(PartType.TOOL, tool_name="write", tool_input={"path": "src/a.py", "content": "x" * 100})
    record = PartRecord(**{**vars(part), "part_id": "part_7_0", "message_id": 7, "ordinal": 0})
    content = flattened([part])

    (view,) = views([record], content)

    assert "tool_input" in view.spans
    assert restored(view, message_id=7, content=content) == record


def test_a_missing_slice_is_an_error():
    items = slices_of("abcdefgh" * 10, "", 2)

    with pytest.raises(ValueError, match="slice of msg_7 is missing"):
        list(joined([items[0], *items[2:]]))


def test_a_price_comes_back_with_its_digits():
    parts = (PartRecord(PartType.STEP_FINISH, step_cost=Decimal("0.10"), part_id="part_7_0", message_id=7),)

    (part,) = from_json(as_json(views(parts, "")))

    assert str(restored(part, message_id=7, content="").step_cost) == "0.10"


@given(st.text(max_size=400), st.integers(1, 50))
def test_a_prefix_costs_no_more_than_it_may_and_is_never_empty(text, budget):
    length = prefix_within(text, budget, words)

    assert words(text[:length]) <= budget
    assert length >= min(1, len(text))
