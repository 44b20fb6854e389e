from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conversations.content.lossless_values import (
    MOST_LEVELS,
    is_name,
    is_storable,
    overlaid,
    split,
    storable,
    storable_json,
    survives_jsonb,
)
from tests.conversations.strategies import as_json_says_it, json_of, plain_texts, texts


@given(texts, json_of(texts), st.lists(texts, max_size=3).map(tuple))
@example("\ud83d\ude00", {"b": 1, "a": 2}, ("\x00",))
def test_the_columns_overlaid_with_what_is_exact_are_the_values_again(text, value, files):
    values = {"text_content": text, "metadata": value, "patch_files": files}

    columns, exact = split(values, frozenset({"metadata"}))

    again = overlaid(columns, json.loads(json.dumps(exact)))
    assert json.dumps(again) == json.dumps(as_json_says_it(values))


@given(texts, json_of(texts), st.lists(texts, max_size=3).map(tuple))
def test_the_columns_hold_nothing_that_the_database_refuses(text, value, files):
    columns, _ = split({"text_content": text, "metadata": value, "patch_files": files}, frozenset({"metadata"}))

    assert is_storable(columns["text_content"])
    assert all(is_storable(file) for file in columns["patch_files"])
    assert is_storable(json.loads(json.dumps(json.dumps(columns["metadata"], ensure_ascii=False))))


def test_what_the_columns_can_hold_is_not_kept_twice():
    values = {"text_content": "söme 文字 😀", "metadata": {"a": 1, "b": [True, None]}, "patch_files": ("a", "b")}

    assert split(values, frozenset({"metadata"})) == (values, {})


@pytest.mark.django_db
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(json_of(plain_texts))
@example({"b": 1, "a": 2})
@example({"aa": 1, "b": 2})
@example({"ä": 1, "zz": 2})
@example([10**300, -(10**300)])
@example({"a": 1.0})
def test_what_is_said_to_survive_jsonb_does(value):
    with connection.cursor() as cursor:
        cursor.execute("SELECT (%s::jsonb)::text", [json.dumps(value)])
        stored = json.loads(cursor.fetchone()[0])

    assert not survives_jsonb(value) or json.dumps(stored) == json.dumps(value)


@pytest.mark.parametrize("value", [{"a": 1, "bb": {"c": [2, "x"]}}, [], {}, "x", True, None, 5, -(10**100)])
def test_ordinary_json_survives(value):
    assert survives_jsonb(value)


@pytest.mark.parametrize(
    "value", [1.5, {"b": 1, "a": 2}, ["\x00"], {"\ud800": 1}, 10**1000, (1, 2), {1: 2}, [[{"x": 0.1}]]], ids=range(8)
)
def test_other_json_does_not(value):
    assert not survives_jsonb(value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (float("nan"), "not JSON compliant"),
        (float("inf"), "not JSON compliant"),
        ({1, 2}, "none that JSON has"),
        (b"bytes", "none that JSON has"),
        (10**5000, "digits"),
    ],
    ids=range(5),
)
def test_a_value_that_json_cannot_say_is_refused(value, sentence):
    with pytest.raises(ValueError, match=sentence):
        split({"metadata": {"a": [value]}}, frozenset({"metadata"}))


@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"in": inner}, lambda inner: (1.5, inner)])
def test_a_value_may_be_nested_deeply_but_not_in_any_number_of_levels(around):
    def nested(levels: int) -> Any:
        value: Any = "innermost"
        for _ in range(levels):
            value = around(value)
        return value

    columns, exact = split({"metadata": nested(MOST_LEVELS)}, frozenset({"metadata"}))

    assert overlaid(columns, exact) == json.loads(json.dumps({"metadata": nested(MOST_LEVELS)}))
    for levels in (MOST_LEVELS + 1, 100_000):
        with pytest.raises(ValueError, match="metadata is nested too deeply: it may have 200 levels"):
            split({"metadata": nested(levels)}, frozenset({"metadata"}))


def test_a_stand_in_keeps_the_length_and_everything_that_can_be_kept():
    assert storable("a\x00b\ud800c") == "a\ufffdb\ufffdc"
    assert storable_json({"k\x00": ["\udfff", 1]}) == {"k\ufffd": ["\ufffd", 1]}


@pytest.mark.parametrize("text", ["a", "ä" * 500, "a b\n"])
def test_a_name_is_short_and_exact(text):
    assert is_name(text)


@pytest.mark.parametrize("text", [None, "", "a" * 501, "a\x00", "\udc00"], ids=range(5))
def test_anything_else_is_no_name(text):
    assert not is_name(text)
