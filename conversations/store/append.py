"""Makes rows of what is to be appended: checks it, counts it and hashes it, for one statement to write."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, get_args, get_type_hints

import orjson

from conversations.content import hashing
from conversations.content.flattening import flattened, reasoning_in, searchable
from conversations.content.large_texts.file_references import FileEntry
from conversations.content.lossless_values import MAX_NAME, is_name, overlaid, split, storable
from conversations.content.metadata_limits import require_bounded
from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid
from conversations.policy import StorePolicy
from conversations.types import NewMessage, NewPart, PartType, Role

APPEND = """
    SELECT message_ids, seqs, created, conflicting_key, message_count, active_messages, active_tokens,
           total_tokens, rest_until_seq, overrides
    FROM lcm_append_messages(%s, %s, %s, %s, %s, %b, %s)
"""

PART_COLUMNS = tuple(NewPart.__dataclass_fields__)
_JSON_COLUMNS = frozenset({"tool_input", "metadata"})
# Each column's type without its None; `object` for JSON, which may be anything.
_KINDS: dict[str, type] = {
    name: kind if isinstance(kind := (get_args(hint) or (None,))[0], type) else object
    for name, hint in get_type_hints(NewPart).items()
}
# What has bounds of its own, and most parts have not.
_BOUNDED = frozenset({"patch_files", "step_tokens_in", "step_tokens_out", "step_cost"})


def rows_of(
    messages: Sequence[NewMessage],
    *,
    tokens: TokenEstimator,
    policy: StorePolicy,
    now: datetime,
    files: Sequence[Sequence[FileEntry]] = (),
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of `messages` and of `message_parts`, of which `as_batch` makes what the database takes.

    `files` lists the files that each message needs, if any message needs one. Raises Invalid, naming the message by its
    place in the batch, for anything the store cannot keep.
    """
    _check_batch(messages, policy)
    message_rows, part_rows, texts, key_orders = [], [], [], []
    for position, message in enumerate(messages, start=1):
        require_bounded(message, position=position, most=policy.max_metadata_bytes)
        try:
            hashes, parts = [], []
            for ordinal, part in enumerate(message.parts):
                part_row = part_row_of(part)
                part_row["position"], part_row["ordinal"] = position, ordinal
                part_rows.append(part_row)
                hashes.append(bytes.fromhex(part_row["part_hash"]))
                parts.append(_as_kept(part, part_row["exact"]) if "exact" in part_row else part)
            message_row, text, keys = _message_row(message, parts, hashes, tokens, now)
            message_row["position"] = position
            texts.append(text)
            key_orders.append(keys)
            message_rows.append(message_row)
        except ValueError as wrong:
            raise Invalid(f"Message {position} of {len(messages)}: {wrong}") from wrong
    # Last, and all at once: between hashes and rows, the tokenizer's tables would be fetched anew for every text.
    counts = tokens.count_each(texts)
    for message_row, count, keys, needed in zip(
        message_rows, counts, key_orders, files or repeat((), len(texts)), strict=True
    ):
        message_row["token_count"] += count
        message_row["record_hash"] = hashing.record_hash(
            idempotency_key=message_row["idempotency_key"],
            token_count=message_row["token_count"],
            token_counter=message_row["token_counter"],
            keys=keys,
            files=needed,
        ).hex()
    return message_rows, part_rows


def part_rows_of(parts: Sequence[NewPart]) -> list[dict[str, Any]]:
    """Parts as model fields; ValueError as `part_row_of`."""
    rows = [part_row_of(part) for part in parts]
    for row in rows:
        row["part_hash"] = bytes.fromhex(row["part_hash"])
        row["exact"] = json.loads(row["exact"]) if "exact" in row else None
    return rows


def part_row_of(part: NewPart) -> dict[str, Any]:
    """One part as columns; ValueError if a value has no place in them."""
    values = {name: value for name, value in vars(part).items() if value is not None and name in _KINDS}
    values["part_type"] = PartType(part.part_type)
    for name, value in values.items():
        kind = _KINDS[name]
        # Nearly always the first comparison says it.
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


def _check_bounds(values: Mapping[str, Any]) -> None:
    if not all(isinstance(file, str) for file in values.get("patch_files", ())):
        raise ValueError("patch_files must be texts.")
    for name in ("step_tokens_in", "step_tokens_out"):
        if not -(2**31) <= values.get(name, 0) < 2**31:
            raise ValueError(f"{name} does not fit a 32-bit number.")
    cost = values.get("step_cost")
    if cost is not None and not (cost.is_finite() and -500 < cost.adjusted() < 500):
        raise ValueError("step_cost is not a decimal number of sensible size.")


def as_batch(message_rows: Sequence[Mapping[str, Any]], part_rows: list[dict[str, Any]]) -> tuple[str, list[str], str]:
    """The rows as `lcm_append_messages` takes them: what is said of each message, their contents, and the parts."""
    contents = [row["content"] for row in message_rows]
    rest = [{name: value for name, value in row.items() if name != "content"} for row in message_rows]
    return as_json(rest), contents, as_json([_beside(contents[row["position"] - 1], row) for row in part_rows])


def _beside(content: str, part_row: dict[str, Any]) -> dict[str, Any]:
    """A part's row beside its message's content, which it does not say again."""
    for name in ("text_content", "tool_output"):
        if part_row.get(name) == content:
            return {**part_row, name: None, "repeats": name}
    return part_row


def as_json(given: list[dict[str, Any]] | dict[str, Any]) -> str:
    """Rows, or one, as the database reads them: what is left out is null there, and costs nothing on the way."""
    if isinstance(given, dict):
        return _written({name: value for name, value in given.items() if value is not None})
    return _written([{name: value for name, value in row.items() if value is not None} for row in given])


def _written(value: Any) -> str:
    """The value as JSON, as the database is sent it."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # A number of more than 64 bits.
        return json.dumps(value, ensure_ascii=False)


def _as_kept(part: NewPart, exact: str) -> NewPart:
    """The part as it will be read: JSON, in which its exact values are kept, joins the halves of a character."""
    return replace(part, **json.loads(exact))


def _message_row(
    message: NewMessage, parts: list[NewPart], part_hashes: list[bytes], tokens: TokenEstimator, now: datetime
) -> tuple[dict[str, Any], str, str | None]:
    """The row of a message, its text and the seal of the order of its JSON keys.

    The tokens of the text, and then the record_hash, are still to be added.
    """
    content = flattened(parts) if message.content is None else message.content
    if not isinstance(content, str):
        raise ValueError("content must be a text.")
    said = {"content": content, "metadata": dict(message.metadata)} if message.metadata else {"content": content}
    columns, exact = split(said, _JSON_COLUMNS)
    content = exact.get("content", content)
    whole = content if message.content is None else searchable(content, parts)
    if whole != content:
        # The column is what is searched; the content itself is kept beside it.
        exact = {**exact, "content": content}
        columns["content"] = storable(whole)
    content_hash = hashing.content_hash(content)
    # As it will be read: what JSON cannot hold otherwise stands in `exact`.
    metadata = columns.get("metadata")
    as_read = exact.get("metadata", metadata) if metadata else {}
    sealed = hashing.metadata_hash(as_read)
    row = {
        "content": columns["content"],
        "metadata": metadata,
        "exact": json.dumps(exact) if exact else None,
        "role": Role(message.role).value,
        "author": checked_name("author", message.author),
        "idempotency_key": checked_name("idempotency_key", message.idempotency_key),
        "created_at": _moment(message.created_at or now).isoformat(),
        "token_count": tokens.count(thought) if (thought := reasoning_in(parts)) else 0,
        "token_counter": tokens.name,
        "chained_parts": len(part_hashes),
        "content_hash": content_hash.hex(),
        "entry_hash": hashing.entry_hash(
            role=message.role, author=message.author, content=content_hash, parts=part_hashes
        ).hex(),
        "metadata_hash": None if sealed is None else sealed.hex(),
    }
    keys = hashing.key_order(as_read, [(part.tool_input, part.metadata) for part in parts])
    return row, whole, keys


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
    """A short text that is compared, never only shown: what the database cannot hold exactly is refused."""
    if text is not None and not is_name(text):
        raise ValueError(f"{field} must be 1 to {MAX_NAME} characters without NUL or lone surrogates.")
    return text


def _moment(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("created_at needs a time zone, such as a Z at its end.")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("created_at lies outside the years 1 to 9999 in UTC.") from None
