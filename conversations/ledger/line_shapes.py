"""The members of each type of line, in order, and their valid values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from conversations.content.large_texts.file_references import FIELDS
from conversations.content.lossless_values import (
    MOST_LEVELS,
    is_bounded_decimal,
    is_deeper,
    is_name,
    is_plain,
    is_storable,
)
from conversations.ledger.lines import as_moment, as_text
from conversations.ledger.types import Line
from conversations.types import PART_COLUMNS, Level, ParentLink, PartType, Role, SummaryKind

Check = Callable[[Any], bool]


class Kind(StrEnum):
    MESSAGE = "message"
    TOOL_RESULT = "tool_result"
    ARTIFACT = "artifact"
    EVENT = "event"


_MESSAGES = {"text", "reasoning", "subtask", "tool"}
_ARTIFACTS = {"file", "patch", "snapshot"}


def kind_of(role: str, parts: Sequence[Mapping[str, Any]]) -> Kind:
    """Classify a message by its role and the parts that it was appended with.

    The kinds are those of specification 002: a tool result is the output of a tool, an artifact has only files or
    patches, and an event has only bookkeeping parts.
    """
    types = {str(part["part_type"]) for part in parts}
    if role == "tool" or (types == {"tool"} and all({"tool_output", "tool_error"} & part.keys() for part in parts)):
        return Kind.TOOL_RESULT
    if not types or types & _MESSAGES:
        return Kind.MESSAGE
    return Kind.ARTIFACT if types & _ARTIFACTS else Kind.EVENT


def actor_of(role: str, author: str | None) -> str:
    """Return the author, or the role if the message has no author."""
    return author or role


def of_type(kind: type, fits: Callable[[Any], object] = lambda value: True) -> Check:
    return lambda value: type(value) is kind and bool(fits(value))


def moment(value: Any) -> bool:
    try:
        return isinstance(value, str) and as_moment(value) is not None
    except (ValueError, OverflowError):
        return False


def whole(low: int, bits: int) -> Check:
    return of_type(int, lambda value: low <= value < 2 ** (bits - 1))


def one_of(*words: str) -> Check:
    return of_type(str, lambda value: value in words)


def listed(check: Check) -> Check:
    return of_type(list, lambda value: all(map(check, value)))


def members(*checks: Check) -> Check:
    """Check a list member by member."""
    return of_type(
        list,
        lambda value: len(value) == len(checks) and all(check(each) for check, each in zip(checks, value, strict=True)),
    )


def maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


text, flag, number, mapping = of_type(str), of_type(bool), of_type(float), of_type(dict)
name = of_type(str, is_name)
digest = of_type(str, re.compile(r"[0-9a-f]{64}").fullmatch)
ulid = of_type(str, re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch)
an_id = of_type(str, re.compile(r"[A-Za-z0-9_-]{1,100}").fullmatch)
# Values that a column can hold unchanged; and objects whose exact value may be stored in the `exact` column.
stored, plain_mapping = of_type(str, is_storable), of_type(dict, is_plain)
exact_mapping = of_type(dict, lambda value: not is_deeper(value, MOST_LEVELS))
count, signed, small, seq = whole(0, 64), whole(-(2**63), 64), whole(0, 32), whole(1, 64)

# The values of enums in compaction, which this room must not import. A test compares them.
REASONS = ("threshold", "manual", "maintenance", "redo", "redo_all")
OUTCOMES = (
    "compacted", "not_needed", "nothing_to_do", "exhausted", "disabled", "stopped", "abandoned", "failed", "skipped",
    "unavailable",
)  # fmt: skip


def source(value: Any) -> bool:
    """Check a source of a session summary: the seq of a message or a summary's id."""
    return seq(value) or an_id(value)


file_entry = members(an_id, maybe(digest), maybe(small), one_of(*FIELDS), maybe(small), maybe(small))

SHAPES: Mapping[str, Mapping[str, Check]] = {
    "header": {"format": text, "version": small, "hash": text, "workspace": name},
    "conversation": {"session_id": name, "created_at": moment},
    "message": {
        "event_id": ulid, "seq": seq, "kind": one_of(*Kind), "actor": name, "role": one_of(*Role),
        "author": maybe(name), "idempotency_key": maybe(name), "recorded_at": moment, "created_at": moment,
        "content": maybe(text), "metadata": maybe(exact_mapping), "parts": listed(mapping), "erased": flag,
        "token_count": small, "token_counter": name, "chained_parts": small, "files": listed(file_entry),
        "content_hash": digest, "metadata_hash": maybe(digest), "entry_hash": digest, "record_hash": maybe(digest),
        "chain_hash": digest,
    },
    "head_move": {"number": small, "at_seq": seq, "head_seq": count, "recorded_at": moment, "reason": stored},
    "summary": {
        "summary_id": an_id, "kind": one_of(*SummaryKind), "depth": small, "created_at": moment,
        "content": maybe(stored), "source_seqs": listed(count), "source_ids": listed(an_id), "first_seq": seq,
        "last_seq": seq, "earliest_at": moment, "latest_at": moment, "source_count": small, "descendant_count": small,
        "source_tokens": count, "token_count": small, "token_counter": name, "level": one_of(*Level),
        "model": stored, "quality": plain_mapping, "retention": maybe(number), "is_degraded": flag,
        "supersedes_id": maybe(an_id), "prompt_hash": stored, "tokens_in": small, "tokens_out": small,
        "duration_ms": small, "run_id": stored, "file_ids": listed(an_id), "erased": flag, "summary_hash": digest,
    },
    "session_summary": {
        "summary_id": an_id, "project": maybe(name), "created_at": moment, "content": maybe(stored),
        "sources": listed(source), "first_seq": seq, "last_seq": seq, "earliest_at": moment, "latest_at": moment,
        "token_count": small, "token_counter": name, "level": one_of(*Level), "model": stored, "prompt_version": stored,
        "retention": maybe(number), "quality": plain_mapping, "is_degraded": flag, "supersedes_id": maybe(an_id),
        "erased": flag, "summary_hash": digest,
    },
    "run": {
        "run_id": an_id, "reason": one_of(*REASONS), "outcome": one_of(*OUTCOMES), "started_at": moment,
        "finished_at": maybe(moment), "tokens_before": signed, "tokens_after": signed, "leaf_summaries": small,
        "condensed_summaries": small, "redone_summaries": small, "details": plain_mapping,
    },
    "boundary": {"host_reference": name, "last_seq": count, "recorded_at": moment, "metadata": plain_mapping},
    "journal": {
        "subpath": stored, "position": seq, "uuid": maybe(name), "recorded_at": moment,
        "entry": maybe(exact_mapping), "erased": flag, "entry_hash": digest,
    },
    "file": {
        "file_id": an_id, "file_name": maybe(name), "mime_type": maybe(name), "byte_size": maybe(count),
        "exploration_summary": maybe(stored), "created_at": moment, "content_hash": maybe(digest),
        "bytes": one_of("inline", "left_out", "missing", "erased"),
    },
    "bytes": {"file_id": an_id, "offset": count, "base64": text},
    "reference": {
        "seq": seq, "file_id": an_id, "part_ordinal": maybe(small), "field": one_of(*FIELDS), "start_at": maybe(small),
        "length": maybe(small),
    },
    "end": {
        "session_id": name, "title": maybe(name), "metadata": plain_mapping, "overrides": plain_mapping,
        "updated_at": moment, "message_count": count, "total_tokens": count, "chain_head": maybe(digest),
        "counts": mapping,
    },
    "trailer": {"conversations": count, "counts": mapping, "lines": count},
}  # fmt: skip

# Optional members, after those of the shape.
OPTIONAL: Mapping[str, Mapping[str, Check]] = {
    "end": {"project": name, "parent_session_id": name, "parent_link": one_of(*ParentLink)},
}

# The values of a part; null members are left out.
_PART_VALUES: Mapping[str, Check] = {
    **dict.fromkeys(PART_COLUMNS, text),
    "part_type": one_of(*PartType),
    **dict.fromkeys(("is_ignored", "is_synthetic", "compaction_auto"), flag),
    **dict.fromkeys(("step_tokens_in", "step_tokens_out"), whole(-(2**31), 32)),
    **dict.fromkeys(("tool_input", "metadata"), lambda value: value is not None and not is_deeper(value, MOST_LEVELS)),
    "patch_files": listed(text),
    # The same limits apply to an append.
    "step_cost": of_type(
        str, lambda value: re.fullmatch(r"-?\d+(\.\d+)?", value) and is_bounded_decimal(Decimal(value))
    ),
}


def as_line(kind: str, row: Any, /, **own: Any) -> Line:
    """Return a line with the members of its type, from `own` or the row's columns."""
    return {"type": kind, **{each: own[each] if each in own else _json(getattr(row, each)) for each in SHAPES[kind]}}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return as_text(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return list(value) if isinstance(value, tuple) else value


def misfit(values: Mapping[str, Any]) -> str:
    """Describe what is wrong with the members of a line; empty if nothing."""
    kind = values.get("type")
    if kind == "part":
        inner = {each: value for each, value in values.items() if each not in ("type", "seq", "line_hash")}
        if list(values)[:2] != ["type", "seq"] or list(values)[-1] != "line_hash" or not seq(values["seq"]):
            return "a part must begin with its seq"
        return misfit_part(inner)
    shape = SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        return "unknown type of line"
    more = {each: check for each, check in OPTIONAL.get(str(kind), {}).items() if each in values}
    wrong = _misfit(values, {"type": text, **shape, **more, "line_hash": digest})
    if not wrong and kind == "message":
        wrong = next(filter(None, map(misfit_part, values["parts"])), "")
    return wrong


def misfit_part(values: Mapping[str, Any]) -> str:
    """Describe what is wrong with a part, in a message or in its own line."""
    given = {each: _PART_VALUES[each] for each in PART_COLUMNS if each in values}
    if "part_type" not in given:
        return "a part needs a part_type"
    return _misfit(values, {"ordinal": small, **given, "part_hash": digest})


def _misfit(values: Mapping[str, Any], shape: Mapping[str, Check]) -> str:
    if list(values) != list(shape):
        odd = [each for each in (*shape, *values) if (each in shape) != (each in values)]
        return f"{odd[0][:40]} is missing or unexpected" if odd else "its members are not in order"
    return next((f"{each} has an invalid value" for each, check in shape.items() if not check(values[each])), "")
