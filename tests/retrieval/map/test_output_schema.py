"""Schemas fetch nothing, and check any value in bounded work."""

from __future__ import annotations

import time
from functools import reduce

import pytest

from conversations.errors import Invalid
from retrieval.map import output_schema
from retrieval.map.item_prompt import NotJson, value_in_answer
from retrieval.map.output_schema import SchemaCheck, checked_schema
from tests.lcmsite.gateway.upstream import Upstream


def test_a_remote_reference_is_refused_and_never_fetched():
    with Upstream() as remote:
        address = f"{remote.url}/schema.json"

        for schema in ({"$ref": address}, {"items": {"anyOf": [{"$dynamicRef": address}]}}):
            with pytest.raises(Invalid):
                checked_schema(schema)
            # As if it had got past the check.
            assert SchemaCheck(schema).errors([1])
        checked_schema({"$id": address, "type": "object"})

    assert remote.requests == []


BOMB = {
    "$defs": {
        **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(30)},
        "d30": {},
    },
    "$ref": "#/$defs/d0",
}


@pytest.mark.parametrize(
    "schema",
    [
        [],
        True,
        {"type": "thing"},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "other.json"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        BOMB,
        reduce(lambda schema, _: {"items": schema}, range(41), {}),
        reduce(lambda schema, _: {"allOf": [schema], "unevaluatedProperties": False}, range(18), {"properties": {}}),
        {"description": "x" * 64_001},
        {"pattern": "(a+)+$"},
        {"pattern": "a*b*c*d"},
        {"pattern": "(a|aa){9}"},
        {"pattern": "(.)\\1"},
        {"pattern": "a?" * 50 + "a" * 50},
        {"pattern": ".{0,999}" * 20 + "b"},
        {"pattern": "(a|a)" * 30 + "b"},
        {"pattern": r"\\*\\*\\*\\*b"},
        {"pattern": r"[\]]*[]]*[^\\]*x"},
        {"pattern": "(?:a*)*"},
        {"pattern": "(?x)(a+) +z"},
        {"pattern": "(?ix:(a+)\n+)z"},
        {"pattern": "(?x-i:(a+)#c\n*)z"},
        {"pattern": "["},
        {"patternProperties": {"(x+)+": {}}},
        {"$id": "https://x.example/s", "items": {"$ref": "#/$defs/none"}},
        {"items": {"$dynamicRef": "#none"}},
        {"const": float("nan")},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_a_schema_that_cannot_be_checked_safely_is_refused(schema, monkeypatch):
    monkeypatch.setattr(output_schema, "MOST_STEPS", 20_000)
    began = time.thread_time()

    with pytest.raises(Invalid):
        checked_schema(schema)

    assert time.thread_time() - began < 10


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "pattern": "^[a-z]+$"}, "boat", "Boat"),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, [1, 2], [1, "2"]),
        ({"properties": {"n": {"$ref": "#"}}, "additionalProperties": False}, {"n": {"n": {}}}, {"n": {"x": 1}}),
        ({"prefixItems": [{"const": 1}], "items": False}, [1], [1, 2]),
        ({"patternProperties": {"^n": {"type": "number"}}}, {"n1": 1, "x": "y"}, {"n1": "1"}),
        ({"enum": ["a", None]}, None, "b"),
        ({"$id": "https://x.example/s", "$defs": {"n": {"multipleOf": 0.5}}, "$ref": "#/$defs/n"}, 1.5, 10**310),
        ({"items": {"$id": "https://x.example/s", "$ref": "#/$defs/n"}, "$defs": {"n": {}}}, [], [1]),
        ({"pattern": r"^-?\d+(\.\d+)?$"}, "-1.5", "1."),
        ({"pattern": r"^(low|middle|high)-[*+?]{4}\*\*\?$"}, "low-*+?***?", "low"),
        ({"pattern": r"^(?i:x) (?-x:y)(?P<x>z)"}, "X yz", "Xyz"),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}, {"a": 2}], [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}]),
    ],
    ids=str,
)  # fmt: skip
def test_values_are_checked_as_the_draft_says(schema, good, bad):
    check = checked_schema(schema)

    assert check.errors(good) == []
    assert check.errors(bad) != []


def test_a_text_that_is_long_for_a_pattern_is_refused_at_once():
    check = checked_schema({"pattern": "a*b*$"})

    began = time.thread_time()
    assert "at most 1,000 characters" in check.errors("a" * 200_000)[0]
    assert check.errors("a" * 1_000) == []
    assert time.thread_time() - began < 5


@pytest.mark.parametrize(
    ("schema", "value", "is_refused"),
    [
        ({"items": {"pattern": "a*a*b"}}, ["a" * 1_000] * 200, True),
        ({"patternProperties": {"a*a*b": {}}}, {f"{n}" + "a" * 990: 1 for n in range(200)}, True),
        ({"additionalProperties": False, "patternProperties": {"a*?a*?b": {}}}, {"a" * 3_000: 1}, True),
        ({"unevaluatedProperties": False, "patternProperties": {"a*?a*?b": {}}}, {"a" * 3_000: 1}, True),
        ({"uniqueItems": True}, [{"a": n} for n in range(20_000)], False),
        ({"items": {"type": "integer"}}, [*range(50_000)], False),
        ({"items": {"allOf": [{}] * 1_500}}, [*range(20_000)], True),
        ({"unevaluatedProperties": True}, {f"{n}": 1 for n in range(25_000)}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}, "type": "array"}] * 40}}},
         [[[[[1]]]]], True),
        ({"anyOf": [{"type": "string"}] * 1_500}, [*range(40_000)], True),
    ],
    ids=["texts", "names", "other names", "names not evaluated", "items", "numbers", "all of", "pairs", "references",
         "long errors"],
)  # fmt: skip
def test_many_texts_and_items_are_checked_in_bounded_work(schema, value, is_refused, monkeypatch):
    monkeypatch.setattr(output_schema, "MOST_TRIALS", 500_000_000)
    began = time.thread_time()

    assert bool(checked_schema(schema).errors(value)) is is_refused
    assert time.thread_time() - began < 20


@pytest.mark.parametrize(
    ("answer", "value"),
    [('{"a": 1}', {"a": 1}), ("```json\n[1, 2]\n```", [1, 2]), (" null \n", None), ('```\n"x"\n```', "x")],
)
def test_an_answer_is_a_json_value_in_a_fence_or_not(answer, value):
    assert value_in_answer(answer) == value


@pytest.mark.parametrize("answer", ["Sure: {}", "{} {}", "NaN", "1e999", "[" * 3000 + "]" * 3000, "", "{'a': 1}"])
def test_an_answer_that_is_more_or_less_is_refused(answer):
    with pytest.raises(NotJson):
        value_in_answer(answer)
