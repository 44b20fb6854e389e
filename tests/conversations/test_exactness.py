from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conversations.content.lossless_values import (
    MOST_LEVELS,
    is_storable,
    overlaid,
    split,
    survives_jsonb,
)
from tests.conversations.strategies import as_json_says_it, json_of, plain_texts, texts


@given(texts, json_of(texts), st.lists(texts, max_size=3).map(tuple))
@example("\ud83d\ude00", {"b": 1, "a": 2}, ("\x00",))
def test_the_columns_overlaid_with_what_is_exact_are_the_values_again(text, value, files):
    values = {"text_content": text, "metadata": value, "patch_files": files}

    columns, exact = split(values)

    again = overlaid(columns, json.loads(json.dumps(exact)))
    assert json.dumps(again) == json.dumps(as_json_says_it(values))
    assert all(map(is_storable, (columns["text_content"], *columns["patch_files"])))
    assert is_storable(json.loads(json.dumps(json.dumps(columns["metadata"], ensure_ascii=False))))


def test_what_the_columns_can_hold_is_not_kept_twice():
    values = {"text_content": "söme 文字 😀", "metadata": {"a": 1, "b": [True, None]}, "patch_files": ("a", "b")}

    assert split(values) == (values, {})
    assert survives_jsonb([{"a": 1, "bb": {"c": [2, "x"]}}, {}, True, None, -(10**100)])


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
        split({"metadata": {"a": [value]}})


@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"in": inner}, lambda inner: (1.5, inner)])
def test_a_value_may_be_nested_deeply_but_not_in_any_number_of_levels(around):
    def nested(levels: int) -> Any:
        value: Any = "innermost"
        for _ in range(levels):
            value = around(value)
        return value

    columns, exact = split({"metadata": nested(MOST_LEVELS)})

    assert overlaid(columns, exact) == json.loads(json.dumps({"metadata": nested(MOST_LEVELS)}))
    for levels in (MOST_LEVELS + 1, 100_000):
        with pytest.raises(ValueError, match="metadata is nested too deeply: it may have 200 levels"):
            split({"metadata": nested(levels)})
