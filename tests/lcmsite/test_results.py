"""Results as JSON: the same for a program and for a terminal, and exact."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from conversations.types import Role
from lcmsite.catalogue.json_text import as_ascii_json, as_bytes

TEXTS = st.text(st.characters(codec=None))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@example("half a pair \ud83d, a whole one \U0001f600, é, NUL \x00, \u2028, \\ud83d")
@example(2**64)
@example(-(2**63) - 1)
def test_whatever_json_can_say_comes_back_from_either_form(value):
    over_http, on_a_terminal = as_bytes({"said": value}), as_ascii_json({"said": value})

    assert json.loads(over_http) == json.loads(on_a_terminal) == {"said": value}
    assert on_a_terminal.isascii()


@dataclass(frozen=True)
class Found:
    at: datetime
    cost: Decimal
    role: Role
    names: frozenset[str]
    more: Any


def test_a_record_says_each_of_its_values_in_one_form():
    at = datetime(2026, 1, 31, 9, 0, 0, 120, tzinfo=UTC)
    found = Found(at, Decimal("0.10"), Role.USER, frozenset("ba"), MappingProxyType({"inner": (at.date(),)}))
    expected = {
        "at": "2026-01-31T09:00:00.000120Z",
        "cost": "0.10",
        "role": "user",
        "names": ["a", "b"],
        "more": {"inner": ["2026-01-31"]},
    }

    said = as_bytes([found])

    assert said.decode() == as_ascii_json([found])
    assert list(json.loads(said)["items"][0].items()) == list(expected.items())


def test_bytes_are_content_in_base64():
    assert as_bytes(b"\x00\xff") == as_ascii_json(b"\x00\xff").encode() == b'{"content":"AP8="}'
