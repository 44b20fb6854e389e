"""What a model asks for, found in whatever it has said around it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.delegation.actions import Describe, Expand, Find, Finish, More, NotAnAction, Unknown, action_in, as_json


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"action": "grep", "query": " port "}', Find("port")),
        ('{"action": "grep", "query": "port", "__dataclass_self__": 1}', Find("port")),
        ('{"action": "describe", "id": "sum_1"}', Describe("sum_1")),
        ('{"action": "expand", "id": "sum_1"}', Expand("sum_1")),
        ('{"action": "expand", "id": "sum_1", "depth": 2, "messages": true}', Expand("sum_1", 2, True)),
        ('{"action": "more", "handle": "c1"}', More("c1")),
        ('{"action": "answer", "answer": "5433"}', Finish("5433")),
        ('{"action": "answer", "answer": "?", "cited": ["msg_1", 7], "complete": 0}', Finish("?", ("msg_1",), False)),
        ('{"action": "answer", "answer": "two\nlines"}', Finish("two\nlines")),
        ('{"action": "expand_query"}', Unknown("expand_query")),
        ('I {think} so: {"note": 1} ```json\n{"action": "more", "handle": "c2"}\n``` or {"action": "x"}', More("c2")),
        ('<think>{"action": "more", "handle": "c1"}</think> {"action": "more", "handle": "c2"}', More("c2")),
    ],
)  # fmt: skip
def test_an_action_is_found(said, meant):
    assert action_in(said) == meant


@pytest.mark.parametrize(
    "said",
    ["", "The port is 5433.", "{", "[]", '{"action": 7}', '{"action": ""}', '{"action": "grep"}', "{" * 100_000]
    + ['{"action": "grep", "query": ["port"]}', '{"action": "expand", "id": "sum_1", "depth": 0}', '{"a":' * 100_000]
    + ['{"action": "expand", "id": "sum_1", "depth": true}', '{"action": "answer", "answer": " "}'],
    ids=lambda said: said[:30],
)
def test_what_is_no_action_is_refused_with_a_word_for_the_model(said):
    with pytest.raises(NotAnAction) as refused:
        action_in(said)

    assert str(refused.value)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_whatever_stands_in_its_fields_it_is_an_action_or_refused(value):
    for name in ("grep", "describe", "expand", "more", "answer", "other"):
        said = json.dumps(
            {"action": name} | dict.fromkeys(("query", "id", "handle", "answer", "depth", "cited"), value)
        )
        try:
            again = json.loads(as_json(action_in(said)))
        except NotAnAction:
            continue

        assert again["action"] == name
