"""Appends that every face refuses: the body, the code of the refusal, and words of what it says."""

from __future__ import annotations

from typing import Any


def said(content: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content, **more}]}


BAD_APPENDS: list[tuple[Any, str, str]] = [
    ('{"messages": [{"role": "user", "conte', "malformed_json", "line 1"),
    ('{"messages": [{"role": "user", "content": NaN}]}', "malformed_json", "NaN"),
    ('{"messages": [{"role": "user", "content": "x", "metadata": {"n": 1e999}}]}', "malformed_json", "too large"),
    ('{"messages": [{"role": "user", "content": "x", "metadata": {"n": ' + "9" * 5000 + "}}]}",
     "malformed_json", "A whole number in this JSON has more than 4300 digits."),
    ('{"messages": ' + "[" * 100_000, "nested_too_deeply", "nested"),
    ('{"messages": [{"role": "user", "content": "x", "metadata": {"a": ' + "[" * 900 + "]" * 900 + "}}]}",
     "invalid", "nested"),
    (b'{"messages": "\xff"}', "malformed_json", "UTF-8"),
    ([], "invalid_params", "object"),
    ({}, "invalid_params", "messages"),
    ({"messages": "hello"}, "invalid_params", "messages: "),
    ({"messages": []}, "invalid", "1 to 1000"),
    ({"messages": [{"role": "user", "content": "x"}] * 1001}, "invalid", "1001"),
    ({"messages": ["hello"]}, "invalid_params", "messages[0]"),
    ({"messages": [{"role": "wizard", "content": "x"}]}, "invalid_params", "messages[0].role: 'wizard'"),
    ({"messages": [{"content": "x"}]}, "invalid_params", "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "invalid_params", "messages[0].content"),
    ({"messages": [{"role": "user", "content": 5}]}, "invalid_params", "messages[0].content: This must be a text"),
    ({"messages": [{"role": "user", "content": "x", "colour": 1}]}, "invalid_params", "messages[0].colour"),
    (said("x", author="a", name="b"), "invalid_params", "messages[0].name"),
    (said("x", created_at="2026-01-31T12:00:00"), "invalid_params", "messages[0].created_at: The time needs its zone"),
    (said("x", created_at="soon"), "invalid_params", "messages[0].created_at: 'soon'"),
    (said("x", created_at=5), "invalid_params", "messages[0].created_at"),
    (said("x", created_at="0001-01-01T00:00:00+10:00"), "invalid", "created_at"),
    (said("x", metadata=[]), "invalid_params", "messages[0].metadata"),
    (said("x", idempotency_key=""), "invalid", "idempotency_key"),
    (said("x", idempotency_key="\x00"), "invalid", "idempotency_key"),
    (said("x", parts={}), "invalid_params", "messages[0].parts"),
    (said("x", parts=[7]), "invalid_params", "messages[0].parts[0]"),
    (said("x", parts=[{}]), "invalid_params", "messages[0].parts[0].part_type"),
    (said("x", parts=[{"part_type": "x"}]), "invalid_params", "messages[0].parts[0].part_type: 'x'"),
    (said("x", parts=[{"part_type": "text", "x": 1}]), "invalid_params", "messages[0].parts[0].x"),
    (said("x", parts=[{"part_type": "text", "text_content": []}]), "invalid_params", "parts[0].text_content"),
    (said("x", parts=[{"part_type": "text", "is_ignored": 1}]), "invalid_params", "messages[0].parts[0].is_ignored"),
    (said("x", parts=[{"part_type": "text", "patch_files": [1]}]), "invalid_params", "parts[0].patch_files"),
    (said("x", parts=[{"part_type": "text", "step_tokens_in": True}]), "invalid_params", "parts[0].step_tokens_in"),
    (said("x", parts=[{"part_type": "text", "step_tokens_in": 2**31}]), "invalid", "step_tokens_in"),
    (said("x", parts=[{"part_type": "text", "step_cost": "dear"}]), "invalid_params", "parts[0].step_cost"),
    (said("x", parts=[{"part_type": "text", "step_cost": "Infinity"}]), "invalid_params", "parts[0].step_cost"),
    (said("x", parts=[{"part_type": "text"}] * 100_000), "invalid", "100000 parts"),
    ({**said("x"), "format": "xml"}, "invalid_params", "format"),
    ({**said("x"), "colour": 1}, "invalid_params", "colour"),
    ({**said("x"), "conversation_id": 1}, "invalid_params", "conversation_id"),
    ({"format": "openai", "messages": [{"role": "user"}]}, "invalid_params", "messages[0]"),
    ({"format": "neutral", "messages": [{"role": "user"}]}, "invalid_params", "messages[0]"),
    ({**said("x", idempotency_key=7), "format": "openai"}, "invalid_params", "messages[0].idempotency_key"),
    ({**said("x", idempotency_key=""), "format": "anthropic"}, "invalid", "idempotency_key"),
    ({"format": "anthropic", "messages": [{"role": "tool", "content": "x"}]}, "invalid_params", "messages[0]: role"),
    ({"messages": [{"role": "developer", "content": "x"}]}, "invalid_params", 'say so with "format": "openai"'),
    ({"messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]},
     "invalid_params", 'say so with "format": "neutral"'),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
     "invalid_params", 'say so with "format": "openai" or "anthropic"'),
    ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}]},
     "invalid_params", 'say so with "format": "anthropic"'),
]  # fmt: skip
