"""Turn messages into rows: check, count and hash them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, get_args, get_type_hints

import orjson

from conversations.content import hashing
from conversations.content.flattening import flattened, reasoning_in, require_bounded, searchable
from conversations.content.large_texts.file_references import FileEntry
from conversations.content.lossless_values import MAX_NAME, is_bounded_decimal, is_name, overlaid, split, storable
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid
from conversations.policy import LEAST_LARGE_TOKENS, StorePolicy
from conversations.types import NewMessage, NewPart, PartType, Role

PART_COLUMNS = tuple(NewPart.__dataclass_fields__)
_JSON_COLUMNS = frozenset({"tool_input", "metadata"})
# Each column's type without its None; `object` for JSON, which may be anything.
_TYPES: dict[str, type] = {
    name: kind if isinstance(kind := (get_args(hint) or (None,))[0], type) else object
    for name, hint in get_type_hints(NewPart).items()
}
# Columns with bounds of their own, which most parts leave empty.
_BOUNDED = frozenset({"patch_files", "step_tokens_in", "step_tokens_out", "step_cost"})


@dataclass
class Draft:
    """A message with its rows, complete but for its place and its record_hash."""

    message: NewMessage
    row: dict[str, Any]
    part_rows: list[dict[str, Any]]
    # The seal of the order of its JSON keys.
    keys: str | None
    files: Sequence[FileEntry] = ()

    @property
    def token_count(self) -> int:
        count: int = self.row["token_count"]
        return count

    @property
    def may_need_files(self) -> bool:
        """Whether it is long enough to become a file under any settings, or names a file."""
        return self.token_count > LEAST_LARGE_TOKENS or any(
            row["part_type"] is PartType.FILE and row.get("file_url", "").startswith("file_") for row in self.part_rows
        )


def draft_messages(
    messages: Sequence[NewMessage], *, tokens: TokenEstimator, policy: StorePolicy, now: datetime
) -> list[Draft]:
    """Make the drafts of an append; Invalid names the message that cannot be kept."""
    _check_batch(messages, policy)
    drafts = []
    for position, message in enumerate(messages, start=1):
        require_bounded(message, position=position, most=policy.max_metadata_bytes)
        try:
            drafts.append(_draft(message, tokens=tokens, now=now))
        except ValueError as wrong:
            raise Invalid(f"Message {position} of {len(messages)}: {wrong}") from wrong
    return drafts


def _draft(message: NewMessage, *, tokens: TokenEstimator, now: datetime) -> Draft:
    part_rows = [part_row_of(part) | {"ordinal": ordinal} for ordinal, part in enumerate(message.parts)]
    part_hashes = [bytes.fromhex(row["part_hash"]) for row in part_rows]
    parts = [
        # As it will be read: JSON, in which its exact values are kept, joins the halves of a character.
        replace(part, **json.loads(row["exact"])) if "exact" in row else part
        for part, row in zip(message.parts, part_rows, strict=True)
    ]
    content = flattened(parts) if message.content is None else message.content
    if not isinstance(content, str):
        raise ValueError("content must be a text.")
    values = {"content": content, "metadata": dict(message.metadata)} if message.metadata else {"content": content}
    columns, exact = split(values, _JSON_COLUMNS)
    content = exact.get("content", content)
    text = content if message.content is None else searchable(content, parts)
    if text != content:
        # The column is what is searched; the content itself is kept beside it.
        exact = {**exact, "content": content}
        columns["content"] = storable(text)
    content_hash = hashing.content_hash(content)
    metadata = columns.get("metadata")
    exact_metadata = exact.get("metadata", metadata) if metadata else {}
    metadata_hash = hashing.metadata_hash(exact_metadata)
    row = {
        "content": columns["content"],
        "metadata": metadata,
        "exact": json.dumps(exact) if exact else None,
        "role": Role(message.role).value,
        "author": checked_name("author", message.author),
        "idempotency_key": checked_name("idempotency_key", message.idempotency_key),
        "created_at": _in_utc(message.created_at or now).isoformat(),
        "token_count": tokens.count(text) + tokens.count(reasoning_in(parts)),
        "token_counter": tokens.name,
        "chained_parts": len(part_hashes),
        "content_hash": content_hash.hex(),
        "entry_hash": hashing.entry_hash(
            role=message.role, author=message.author, content=content_hash, parts=part_hashes
        ).hex(),
        "metadata_hash": None if metadata_hash is None else metadata_hash.hex(),
    }
    keys = hashing.key_order(exact_metadata, [(part.tool_input, part.metadata) for part in parts])
    return Draft(message, row, part_rows, keys)


def as_batch(drafts: Sequence[Draft]) -> tuple[str, list[str], str]:
    """The arguments of `lcm_append_messages`: messages, contents, parts."""
    messages, parts = [], []
    for position, draft in enumerate(drafts, start=1):
        messages.append({**draft.row, "position": position, "record_hash": _record_hash(draft), "content": None})
        parts += [{**_without_repeats(row, draft.row["content"]), "position": position} for row in draft.part_rows]
    return as_json(messages), [draft.row["content"] for draft in drafts], as_json(parts)


def _record_hash(draft: Draft) -> str:
    return hashing.record_hash(
        idempotency_key=draft.row["idempotency_key"],
        token_count=draft.row["token_count"],
        token_counter=draft.row["token_counter"],
        keys=draft.keys,
        files=draft.files,
    ).hex()


def _without_repeats(part_row: dict[str, Any], content: str) -> dict[str, Any]:
    """Replace a part's text that equals the content by the name of its column."""
    for name in ("text_content", "tool_output"):
        if part_row.get(name) == content:
            return {**part_row, name: None, "repeats": name}
    return part_row


def part_rows_of(parts: Sequence[NewPart]) -> list[dict[str, Any]]:
    """Parts as model fields; ValueError as `part_row_of`."""
    rows = [part_row_of(part) for part in parts]
    for row in rows:
        row["part_hash"] = bytes.fromhex(row["part_hash"])
        row["exact"] = json.loads(row["exact"]) if "exact" in row else None
    return rows


def part_row_of(part: NewPart) -> dict[str, Any]:
    """One part as columns; ValueError if a value has no place in them."""
    values = {name: value for name, value in vars(part).items() if value is not None and name in _TYPES}
    values["part_type"] = PartType(part.part_type)
    for name, value in values.items():
        kind = _TYPES[name]
        if type(value) is not kind and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise ValueError(f"{name} must be of the type {kind.__name__}, not {type(value).__name__}.")
    if not _BOUNDED.isdisjoint(values):
        _check_bounds(values)
    columns, exact = split(values, _JSON_COLUMNS)
    if "step_cost" in values:
        columns["step_cost"] = format(values["step_cost"], "f")
    columns["part_hash"] = hashing.part_hash(overlaid(values, exact)).hex()
    if exact:
        columns["exact"] = json.dumps(exact)
    return columns


def as_json(given: list[dict[str, Any]] | dict[str, Any]) -> str:
    """Serialize rows, or one, for the database; an absent column is null there."""
    if isinstance(given, dict):
        return _serialized({name: value for name, value in given.items() if value is not None})
    return _serialized([{name: value for name, value in row.items() if value is not None} for row in given])


def _serialized(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # A number of more than 64 bits.
        return json.dumps(value, ensure_ascii=False)


def _check_bounds(values: Mapping[str, Any]) -> None:
    if not all(isinstance(file, str) for file in values.get("patch_files", ())):
        raise ValueError("patch_files must be texts.")
    for name in ("step_tokens_in", "step_tokens_out"):
        if not -(2**31) <= values.get(name, 0) < 2**31:
            raise ValueError(f"{name} does not fit a 32-bit number.")
    cost = values.get("step_cost")
    if cost is not None and not is_bounded_decimal(cost):
        raise ValueError("step_cost is not a decimal number of sensible size.")


def _check_batch(messages: Sequence[NewMessage], policy: StorePolicy) -> None:
    if not 1 <= len(messages) <= policy.max_batch_messages:
        raise Invalid(f"An append takes 1 to {policy.max_batch_messages} messages, not {len(messages)}.")
    for position, message in enumerate(messages, start=1):
        if len(message.parts) > policy.max_message_parts:
            raise Invalid(
                f"Message {position} has {len(message.parts)} parts; it may have {policy.max_message_parts} at most."
            )
    keys = [message.idempotency_key for message in messages if message.idempotency_key is not None]
    if len(keys) != len(set(keys)):
        [(twice, _)] = Counter(keys).most_common(1)
        raise Invalid(f"Two messages of one append have the same idempotency_key, {twice[:80]!r}; give each its own.")


def checked_name(field: str, text: str | None) -> str | None:
    """Return a text that is compared; ValueError if no column holds it exactly."""
    if text is not None and not is_name(text):
        raise ValueError(f"{field} must be 1 to {MAX_NAME} characters without NUL or lone surrogates.")
    return text


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("created_at needs a time zone, such as a Z at its end.")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("created_at lies outside the years 1 to 9999 in UTC.") from None
