"""Invariants of counters and token counts, and of work that must have ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from conversations.content.flattening import attachment_tokens, reasoning_in
from conversations.content.hashing import content_hash
from conversations.content.lossless_values import storable
from conversations.content.tokens import TokenEstimator
from conversations.sql import load
from conversations.store.read import messages_of
from conversations.types import MessageRecord
from integrity.invariants import hash_invariants
from integrity.invariants.invariant import Found, count_findings, in_sql, invariant, stream_rows, violations
from integrity.types import Finding, Severity

FILE = "integrity/figure_invariants.sql"
SQL = load(FILE)

in_sql(
    FILE,
    Severity.WARNING,
    {"counters_are_recounts": "The counters of a conversation are what counting its rows gives."},
)


@invariant(Severity.WARNING, is_sampled=True)
def token_counts_are_recounts(conversation_ids: Sequence[int], *, every: int = 1) -> Found:
    """Every token count of a message or a summary is what its counter counts.

    Texts that do not match their hash are not reported here, because the invariants about hashes report them. Earlier
    versions did not count images: such a count is accepted.
    """
    miscounted = [*miscounted_summaries(stream_rows(SQL["summaries_to_recount"], conversation_ids, every=every))]
    if miscounted:
        altered = {
            finding.id
            for finding in violations(hash_invariants.SQL["summaries_match_their_hashes"], conversation_ids).findings
        }
        miscounted = [finding for finding in miscounted if finding.id not in altered]
    return count_findings(_miscounted_messages(conversation_ids, every)) + count_findings(miscounted)


def _miscounted_messages(conversation_ids: Sequence[int], every: int) -> Iterator[Finding]:
    for conversation_id, message_id, content, recorded, counter, chained, is_plain, stored_hash in stream_rows(
        SQL["messages_to_recount"], conversation_ids, every=every
    ):
        tokens = TokenEstimator(encoding=counter)
        if tokens.name != counter:
            yield Finding(conversation_id, f"msg_{message_id}", f"was counted by the unknown counter {counter}")
            continue
        if is_plain:
            count, images = tokens.count(content), 0
            is_as_hashed = count == recorded or content_hash(content) == bytes(stored_hash)
        else:
            [message] = messages_of([message_id])
            count = count_of(message, column=content, chained=chained, tokens=tokens)
            images = attachment_tokens(part for part in message.parts if part.ordinal < chained)
            is_as_hashed = message.content_hash == content_hash(message.content).hex()
        if recorded not in (count, count + images) and is_as_hashed:
            yield Finding(conversation_id, f"msg_{message_id}", f"costs {count + images} tokens, not {recorded}")


def miscounted_summaries(rows: Iterable[tuple[Any, ...]]) -> Iterator[Finding]:
    """Count summaries again: rows of conversation, id, text, count and counter."""
    for conversation_id, summary_id, content, recorded, counter in rows:
        tokens = TokenEstimator(encoding=counter)
        if tokens.name != counter:
            yield Finding(conversation_id, summary_id, f"was counted by the unknown counter {counter}")
        elif (count := tokens.count(content)) != recorded:
            yield Finding(conversation_id, summary_id, f"costs {count} tokens, not {recorded}")


def count_of(message: MessageRecord, *, column: str, chained: int, tokens: TokenEstimator) -> int:
    """Recount the texts of a message with parts; `column` is its content."""
    parts = [part for part in message.parts if part.ordinal < chained]
    text: str | None = message.content
    if column != storable(message.content):
        text = hash_invariants.searched_text(message.content, parts, column=column)
    reasoning = reasoning_in(parts)
    return tokens.count(column if text is None else text) + (tokens.count(reasoning) if reasoning else 0)


in_sql(
    FILE,
    Severity.WARNING,
    {
        "runs_add_up": "No run records a negative token count, or a greater one after compaction.",
        "work_comes_to_an_end": "No job is left for an hour after its lease, and no run for a day.",
    },
)
in_sql(
    FILE,
    Severity.WARNING,
    {"grants_come_to_an_end": "No grant is open a month after it expired, or lasts longer than a day."},
    of_the_site=True,
)
