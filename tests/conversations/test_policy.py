from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from compaction.policy import CompactionPolicy
from conversations.errors import Invalid
from conversations.policy import Policy, StorePolicy, check_overrides, checked, knob


@dataclass(frozen=True)
class Example(Policy):
    count: int = knob(5, "How many.", low=1, high=10)
    share: float = knob(0.5, "How much.", low=0.0, high=1.0)
    loud: bool = knob(False, "Whether it is loud.")
    name: str = knob("x", "What it is called.")
    at_least: int = knob(1, "No fewer.", low=1)


def test_the_settings_hold_only_what_was_changed(settings):
    settings.LCM = {"count": 7, "encoding": "estimate"}

    assert Example.from_settings() == Example(count=7)
    assert StorePolicy.from_settings() == StorePolicy(encoding="estimate")


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, Example()),
        ({"count": "7"}, Example(count=7)),
        ({"count": 7.0}, Example(count=7)),
        ({"share": 1}, Example(share=1.0)),
        ({"share": "0.25"}, Example(share=0.25)),
        ({"loud": "YES"}, Example(loud=True)),
        ({"loud": "off"}, Example(loud=False)),
        ({"count": 1, "at_least": 10**9}, Example(count=1, at_least=10**9)),
        ({"somebody_elses": 1}, Example()),
    ],
)
def test_overrides_are_read_as_the_knobs_type(overrides, expected):
    assert Example().overridden(overrides) == expected


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"count": 0}, "count: 0 is outside 1 to 10."),
        ({"count": 11}, "count: 11 is outside 1 to 10."),
        ({"count": 1.5}, "count: 1.5 is not a whole number."),
        ({"count": "many"}, "count: 'many' is not a whole number."),
        ({"count": True}, "count: True is not a number."),
        ({"count": float("inf")}, "count: inf is not a whole number."),
        ({"share": float("nan")}, "share: nan is not a number."),
        ({"share": float("inf")}, "share: inf is outside 0.0 to 1.0."),
        ({"share": -0.1}, "share: -0.1 is outside 0.0 to 1.0."),
        ({"loud": "maybe"}, "loud: 'maybe' is not yes or no."),
        ({"name": 5}, "name: 5 is not a text."),
        ({"at_least": 0}, "at_least: 0 is outside 1 and above."),
    ],
)
def test_a_value_that_the_knob_does_not_take_is_refused_with_what_it_would(overrides, sentence):
    with pytest.raises(Invalid) as refusal:
        Example().overridden(overrides)

    assert refusal.value.detail == sentence


@pytest.mark.parametrize("policy", [StorePolicy, CompactionPolicy])
def test_every_default_is_a_value_that_its_knob_takes(policy):
    for each in fields(policy):
        assert checked(each, policy.kinds()[each.name], each.default) == each.default


def test_a_conversation_may_have_settings_of_its_own():
    given = {"fresh_tail_count": "4", "context_threshold": 0.5}

    assert check_overrides(given) == {"fresh_tail_count": 4, "context_threshold": 0.5}


@pytest.mark.parametrize("name", ["encoding", "max_batch_messages", "job_lease_seconds", "nonsense"])
def test_what_is_not_a_conversations_to_set_is_refused_with_what_is(name):
    with pytest.raises(Invalid, match="fresh_tail_count"):
        check_overrides({name: 1})
