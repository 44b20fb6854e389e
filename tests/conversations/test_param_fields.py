"""What params are made of: a value taken at a glance is the one that DRF, asked about each of its rules, takes."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from conversations.param_fields import Choice, ConversationId, MessageId, Sha256, Text, WholeNumber
from conversations.types import Role

FIELDS = [
    Text(),
    Text(max_length=3),
    Text(allow_null=True),
    Sha256(),
    WholeNumber(),
    WholeNumber(min_value=1, max_value=7),
    ConversationId(),
    MessageId(),
    Choice(choices=["", "user", "tool"]),
    Choice(choices=list(Role)),
]
TEXTS = [
    "",
    " ",
    "abc",
    "abcd",
    "a\nb",
    "\t",
    "a\x00",
    "\ud800",
    "你",
    "user",
    "7",
    "msg_7",
    "f" * 64,
    "F" * 63,
    "g" * 64,
]
NUMBERS = [-1, 0, 1, 7, 8, 7.0, 7.5, 2**63 - 1, 2**63, True, False]
VALUES = [*TEXTS, *NUMBERS, None, [], ["user"], {}, b"abc", Role.USER]


def outcome(by: Any, field: serializers.Field, value: Any) -> Any:
    try:
        taken = by.run_validation(field, value)
    except ValidationError as refusal:
        return refusal.detail
    return type(taken), taken


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: type(field).__name__)
@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_what_is_taken_at_a_glance_is_what_drf_takes(field, value):
    by_drf = serializers.CharField if isinstance(field, Text) else serializers.Field

    assert outcome(type(field), field, value) == outcome(by_drf, field, value)
