"""Append messages with their parts in one SQL statement, and read them.

Each message is first converted to a `Draft`: it is validated and hashed, its tokens are counted, its rows are built.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from django.db import DataError, transaction
from prometheus_client import Counter

from conversations.content import hashing
from conversations.content.flattening import attachment_tokens, flattened, reasoning_in, require_bounded, searchable
from conversations.content.large_texts.cutting import MarkedMessage
from conversations.content.large_texts.file_references import FileEntry
from conversations.content.large_texts.moving import LongTextMover, restore_texts, write_references
from conversations.content.lossless_values import as_json, require_names, split, storable
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator
from conversations.errors import Conflict, ConversationBusy, Invalid, LcmError, NotFound, StaleHead, Unavailable
from conversations.files.large_files import LargeFileService
from conversations.models import FileReference, Message
from conversations.policy import LEAST_LARGE_TOKENS, StorePolicy
from conversations.scope import EVERYTHING, Scope
from conversations.signals import messages_appended
from conversations.sql import bigint, first_row
from conversations.store.injected import BEGINNING, Screened, without_injected
from conversations.store.pages import Page, fitting_messages
from conversations.store.part_rows import part_row_of
from conversations.store.read import erased_among, messages_after, messages_of, seqs_of_keys
from conversations.store.withheld import readable
from conversations.types import (
    AppendedMessage,
    AppendResult,
    Counters,
    MessageRecord,
    MovedText,
    NewMessage,
    PartType,
    Role,
)

_APPEND = "SELECT * FROM lcm_append_messages(%s, %s, %s, %s, %s, %b, %s)"

MESSAGES = Counter("lcm_ingest_messages_total", "Messages stored, by role.", ["role"])
TOKENS = Counter("lcm_ingest_tokens_total", "Tokens of the messages stored.")
BYTES = Counter("lcm_ingest_bytes_total", "Bytes of the messages' contents, as UTF-8.")
REPEATS = Counter("lcm_ingest_repeats_total", "Messages sent again under an idempotency key that was stored already.")
CONFLICTS = Counter("lcm_ingest_conflicts_total", "Appends refused: their idempotency key belongs to another message.")

# These series exist from the start: no rate can be computed for a series that begins with its first event.
for _role in Role:
    MESSAGES.labels(_role.value)


@dataclass(frozen=True)
class MessageStore:
    tokens: TokenEstimator
    policy: StorePolicy
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        policy = StorePolicy.from_settings()
        return cls(tokens=TokenEstimator(encoding=policy.encoding), policy=policy, scope=scope)

    def append_messages(
        self, *, conversation_id: int, messages: Sequence[NewMessage], expected_seq: int | None = None
    ) -> AppendResult:
        """Append messages, with their parts, to the conversation: all, or none.

        The messages are durable and searchable on return. A message whose idempotency key is already stored is not
        written again, even if the stored message was `erased` since. A text of more than `large_file_tokens` tokens is
        moved to a file (`moved`); in the message, an element with the file's id replaces the text. Text that LCM
        injected into a prompt is not stored (`skipped`).
        Raises NotFound; Invalid for values that cannot be stored; Conflict if a key was used before for another
        message; Conflict `stale_head` if the head is not at `expected_seq`, unless all messages are already stored
        under their keys; ConversationBusy, retryable, if a message with a long text is erased meanwhile; Unavailable if
        a file cannot be stored.
        """
        sent = without_injected(messages) if any(map(_may_be_injected, messages)) else Screened(tuple(messages))
        if sent.skipped and not sent.messages:
            conversation = self.scope.conversation(conversation_id)
            return AppendResult(conversation_id, (), conversation.counters, skipped=sent.skipped)
        if expected_seq is None:
            result = self._append_now(conversation_id, sent.messages)
        else:
            result = self._append_behind(expected_seq, conversation_id, sent.messages)
        return replace(result, skipped=sent.skipped)

    def _append_now(self, conversation_id: int, messages: Sequence[NewMessage]) -> AppendResult:
        now = datetime.now(UTC)
        drafts = self._drafts(messages, now)
        if not any(draft.may_need_files for draft in drafts):
            return self._append(conversation_id, drafts)
        conversation = self.scope.conversation(conversation_id)
        interception = LongTextMover(
            conversation=conversation,
            files=LargeFileService.from_settings(self.scope),
            tokens=self.tokens,
            limit=self.policy.overridden(conversation.overrides).large_file_tokens,
        )
        try:
            return self._append_with_files(interception, conversation_id, drafts, now)
        except LcmError:
            interception.discard()
            raise

    @transaction.atomic
    def _append_behind(self, expected_seq: int, conversation_id: int, messages: Sequence[NewMessage]) -> AppendResult:
        """Append if the head is at this seq, or if all messages are stored already."""
        head = self.scope.conversation(conversation_id, locked=True).head_seq
        keys = {message.idempotency_key or "" for message in messages}
        if head != expected_seq and len(seqs_of_keys(conversation_id, keys)) < len(keys):
            raise StaleHead(
                f"The head of conversation {conversation_id} is at seq {head}, not at {expected_seq}; nothing was"
                " stored. Read what is new, then append behind it.",
                head_seq=head,
            )
        return self._append_now(conversation_id, messages)

    def _append_with_files(
        self, interception: LongTextMover, conversation_id: int, drafts: Sequence[Draft], now: datetime
    ) -> AppendResult:
        """Store the bytes of long texts, then files and messages in one transaction."""
        keys = [draft.message.idempotency_key for draft in drafts if draft.message.idempotency_key is not None]
        # Texts of stored messages must not reach storage again, least of all erased ones; the append recognizes them.
        known = erased_among(conversation_id, keys) | self._recognized(conversation_id, drafts)
        marked = [
            MarkedMessage(draft.message)
            if draft.message.idempotency_key in known
            else interception.marked(draft.message, token_count=draft.token_count)
            for draft in drafts
        ]
        with transaction.atomic():
            settled = [interception.settled(each) for each in marked]
            drafts = [
                replace(self._drafts([each.message], now)[0] if each.moved else draft, files=each.entries)
                for draft, each in zip(drafts, settled, strict=True)
            ]
            result = self._append(conversation_id, drafts)
            if any(message.erased and each.moved for message, each in zip(result.messages, settled, strict=True)):
                # Its text must not stay in a new file.
                raise ConversationBusy(
                    "A message of this append was erased meanwhile; nothing was stored. Send it again."
                )
            message_ids = [message.message_id for message in result.messages]
            write_references(settled, message_ids, created=[message.created for message in result.messages])
        moved = FileReference.objects.filter(message__in=message_ids, length__gt=0).order_by("message__seq", "pk")
        places: Any = moved.values_list("message_id", "part_ordinal", "field", "file_id", "file__byte_size")
        return replace(result, moved=tuple(MovedText(*each) for each in places))

    def _recognized(self, conversation_id: int, drafts: Sequence[Draft]) -> set[str | None]:
        """Return the keys of stored messages with the same whole texts.

        Their drafts get the hashes that are stored: another `large_file_tokens` may have been in force.
        """
        found, files = set(), LargeFileService.from_settings(self.scope)
        long = {draft.message.idempotency_key: draft for draft in drafts if draft.token_count > LEAST_LARGE_TOKENS}
        keyed = Message.objects.filter(conversation_id=conversation_id, idempotency_key__in=long.keys() - {None})
        for row in keyed.readable():
            draft = long[row.idempotency_key]
            with suppress(Conflict, NotFound, Unavailable):
                whole = restore_texts(*messages_of([row.pk]), files=files)
                parts = [bytes.fromhex(part_row_of(part)["part_hash"]) for part in whole.parts[: row.chained_parts]]
                content = hashing.content_hash(whole.content)
                entry = hashing.entry_hash(role=whole.role, author=whole.author, content=content, parts=parts)
                if entry.hex() == draft.row["entry_hash"]:
                    stored = {name: bytes(getattr(row, name)).hex() for name in ("entry_hash", "content_hash")}
                    draft.row |= {**stored, "token_count": row.token_count}
                    found.add(row.idempotency_key)
        return found

    def _drafts(self, messages: Sequence[NewMessage], now: datetime) -> list[Draft]:
        """Build the drafts of an append; Invalid names the message that is not valid."""
        _check_batch(messages, self.policy)
        drafts = []
        for position, message in enumerate(messages, start=1):
            require_bounded(message, position=position, most=self.policy.max_metadata_bytes)
            try:
                drafts.append(_draft(message, tokens=self.tokens, now=now))
            except (Invalid, ValueError) as wrong:
                raise Invalid(f"Message {position} of {len(messages)}: {wrong}") from wrong
        return drafts

    def _append(self, conversation_id: int, drafts: Sequence[Draft]) -> AppendResult:
        if conversation_id >= 2**63:
            # Beyond bigint: the scope raises the same NotFound as for any unknown id.
            self.scope.conversation(conversation_id)
        keyed = any(draft.row["idempotency_key"] is not None for draft in drafts)
        where = (bigint(conversation_id), self.scope.workspace_id, MESSAGE_OVERHEAD_TOKENS, keyed)
        try:
            row = first_row(_APPEND, (*where, *_as_batch(drafts)))
        except DataError as refused:
            raise Invalid("The database cannot store one of these values.") from refused
        if row is None or row["message_ids"] is None:
            self.scope.conversation(conversation_id)
            raise NotFound(f"There is no conversation {conversation_id} that you may see.")
        if row["conflicting_key"] is not None:
            CONFLICTS.inc()
            raise Conflict(
                f"The idempotency key {row['conflicting_key']!r} was used before for another message; "
                "nothing was stored. Use a new key for new content.",
                idempotency_key=row["conflicting_key"],
            )
        counters = Counters(**{name: row[name] for name in Counters.__dataclass_fields__})
        messages = tuple(
            AppendedMessage(message_id, seq, draft.token_count, draft.row["content_hash"], created)
            for draft, message_id, seq, created in zip(
                drafts, row["message_ids"], row["seqs"], row["created"], strict=True
            )
        )
        if not all(row["created"]):
            conversation = self.scope.conversation(conversation_id)
            keys = [draft.message.idempotency_key or "" for draft in drafts]
            # By key, so that a fork's copies of erased messages count, too.
            erased = erased_among(conversation_id, keys)
            messages = tuple(
                replace(each, active=conversation.is_active(each.seq), erased=not each.created and key in erased)
                for each, key in zip(messages, keys, strict=True)
            )
        transaction.on_commit(partial(_count, drafts, messages))
        messages_appended.send(
            sender=MessageStore,
            conversation_id=conversation_id,
            messages=messages,
            counters=counters,
            # Django configures the driver to return jsonb as text.
            overrides=json.loads(row["overrides"]),
        )
        return AppendResult(conversation_id=conversation_id, messages=messages, counters=counters)

    def get_message(self, *, message_id: int, whole: bool = False) -> MessageRecord:
        """Return one message with its parts; raises NotFound.

        `whole` restores texts that were moved to files, byte for byte. It raises Unavailable if a file cannot be read,
        Conflict `quarantined` or `damaged` if a file is. A quarantined message is returned without its texts.
        """
        self.scope.message(message_id)
        [message] = readable(messages_of([message_id]))
        is_restore_texts = whole and not message.quarantined
        return restore_texts(message, files=LargeFileService.from_settings(self.scope)) if is_restore_texts else message

    def list_messages(self, *, conversation_id: int, after_seq: int = 0, limit: int = 100) -> list[MessageRecord]:
        """List messages with their parts, oldest first.

        A page has at most 8 MiB, or one larger message, so it may hold fewer messages than `limit`. Erased messages
        are listed, too, so the seqs have no gaps. A gap means that a row is missing from the database; `lcm check`
        reports it. Quarantined messages are listed without their texts. Raises NotFound.
        """
        fit, more = fitting_messages(conversation_id=conversation_id, after_seq=after_seq, limit=limit)
        found = messages_after(
            conversation_id, workspace_id=self.scope.workspace_id, after_seq=after_seq, limit=min(limit, fit)
        )
        if not found:
            # Only checked here: if there are messages, the conversation exists in this scope.
            self.scope.conversation(conversation_id)
        return Page(readable(found), more=more and bool(found))


def _may_be_injected(message: NewMessage) -> bool:
    """Whether a text of the message has the beginning of an injected element."""
    texts = [message.content, *(text for part in message.parts for text in (part.text_content, part.tool_output))]
    return any(isinstance(text, str) and BEGINNING in text for text in texts)


def _count(drafts: Sequence[Draft], messages: Sequence[AppendedMessage]) -> None:
    """Count an append in the metrics."""
    stored = [draft.row for draft, message in zip(drafts, messages, strict=True) if message.created]
    for role in {row["role"] for row in stored}:
        MESSAGES.labels(role).inc(sum(row["role"] == role for row in stored))
    TOKENS.inc(sum(row["token_count"] for row in stored))
    BYTES.inc(sum(len(row["content"].encode()) for row in stored))
    REPEATS.inc(len(messages) - len(stored))


@dataclass
class Draft:
    """A message with its rows, complete except for its seq and its record_hash."""

    message: NewMessage
    row: dict[str, Any]
    part_rows: list[dict[str, Any]]
    # The hash of the order of the message's JSON keys: see `hashing.key_order`.
    keys: str | None
    files: Sequence[FileEntry] = ()

    @property
    def token_count(self) -> int:
        return int(self.row["token_count"])

    @property
    def may_need_files(self) -> bool:
        """Whether the message may have a text to move to a file, or names a file."""
        return self.token_count > LEAST_LARGE_TOKENS or any(
            row["part_type"] is PartType.FILE and row.get("file_url", "").startswith("file_") for row in self.part_rows
        )


def _draft(message: NewMessage, *, tokens: TokenEstimator, now: datetime) -> Draft:
    require_names(author=message.author, idempotency_key=message.idempotency_key)
    part_rows = [part_row_of(part) | {"ordinal": ordinal} for ordinal, part in enumerate(message.parts)]
    part_hashes = [bytes.fromhex(row["part_hash"]) for row in part_rows]
    parts = [
        # The part as it will be read back: exact values are stored as JSON, which joins surrogate pairs.
        replace(part, **json.loads(row["exact"])) if "exact" in row else part
        for part, row in zip(message.parts, part_rows, strict=True)
    ]
    content = flattened(parts) if message.content is None else message.content
    if not isinstance(content, str):
        raise ValueError("content must be a text.")
    values = {"content": content, "metadata": dict(message.metadata)} if message.metadata else {"content": content}
    columns, exact = split(values)
    content = exact.get("content", content)
    text = content if message.content is None else searchable(content, parts)
    if text != content:
        # The column has the text for search, and `exact` the content itself.
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
        "author": message.author,
        "idempotency_key": message.idempotency_key,
        "created_at": _in_utc(message.created_at or now).isoformat(),
        "token_count": tokens.count(text) + tokens.count(reasoning_in(parts)) + attachment_tokens(parts),
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


def _as_batch(drafts: Sequence[Draft]) -> tuple[str, list[str], str]:
    """Return the arguments of `lcm_append_messages`: messages, contents, parts."""
    messages, parts = [], []
    for position, draft in enumerate(drafts, start=1):
        record_hash = hashing.record_hash(
            idempotency_key=draft.row["idempotency_key"],
            token_count=draft.token_count,
            token_counter=draft.row["token_counter"],
            keys=draft.keys,
            files=draft.files,
        )
        messages.append({**draft.row, "position": position, "record_hash": record_hash.hex(), "content": None})
        parts += [{**_without_repeats(row, draft.row["content"]), "position": position} for row in draft.part_rows]
    return as_json(messages), [draft.row["content"] for draft in drafts], as_json(parts)


def _without_repeats(part_row: dict[str, Any], content: str) -> dict[str, Any]:
    """Omit a part's text that equals the content; `repeats` names its column."""
    for name in ("text_content", "tool_output"):
        if part_row.get(name) == content:
            return {**part_row, name: None, "repeats": name}
    return part_row


def _check_batch(messages: Sequence[NewMessage], policy: StorePolicy) -> None:
    if not 1 <= len(messages) <= policy.max_batch_messages:
        raise Invalid(f"An append takes 1 to {policy.max_batch_messages} messages, not {len(messages)}.")
    for position, message in enumerate(messages, start=1):
        if len(message.parts) > policy.max_message_parts:
            raise Invalid(
                f"Message {position} has {len(message.parts)} parts; it may have at most {policy.max_message_parts}."
            )
    keys = [message.idempotency_key for message in messages if message.idempotency_key is not None]
    if len(keys) != len(set(keys)):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Invalid(f"Two messages of one append have the same idempotency_key, {twice[:80]!r}; give each its own.")


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("created_at needs a time zone, such as a Z at its end.")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("created_at lies outside the years 1 to 9999 in UTC.") from None
