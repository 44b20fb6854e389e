"""What a text costs is what counting it again gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conversations.content.flattening import reasoning_in, searchable
from conversations.content.hashing import content_hash
from conversations.content.lossless_values import storable
from conversations.content.tokens import TokenEstimator
from conversations.store.read import messages_of
from conversations.types import MessageRecord
from integrity.invariants.hash_invariants import summaries_match_their_hashes
from integrity.invariants.invariant import Found, counted, invariant, streamed
from integrity.types import Finding, Severity

# Nearly every message is its text and nothing else; only where there is more are its parts read.
_MESSAGES = """
    SELECT m.conversation_id, m.message_id, m.content, m.token_count, m.token_counter, m.chained_parts,
           m.exact IS NULL AND NOT EXISTS (
               SELECT FROM message_parts p
               WHERE p.message_id = m.message_id AND p.part_type = 'reasoning' AND p.ordinal < m.chained_parts),
           m.content_hash
    FROM messages m
    WHERE m.conversation_id = ANY(%(ids)s) AND m.message_id %% %(every)s = 0
      AND m.cold_block_id IS NULL AND m.erased_by_id IS NULL
    ORDER BY m.conversation_id, m.message_id
"""
_SUMMARIES = """
    SELECT conversation_id, summary_id, content, token_count, token_counter
    FROM summaries
    WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NULL AND abs(hashtext(summary_id)) %% %(every)s = 0
    ORDER BY conversation_id, summary_id
"""


@invariant(Severity.WARNING, reads_texts=True, is_sampled=True)
def token_counts_are_recounts(conversation_ids: Sequence[int], *, every: int = 1) -> Found:
    """What a message or a summary costs is what its counter, which is named beside it, counts.

    Of a text that is not what was hashed nothing is said here: that it is not is what is wrong with it.
    """
    miscounted = [*_miscounted_summaries(conversation_ids, every)]
    if miscounted:
        altered = {finding.id for finding in summaries_match_their_hashes(conversation_ids).findings}
        miscounted = [finding for finding in miscounted if finding.id not in altered]
    return counted(_miscounted_messages(conversation_ids, every)) + counted(miscounted)


def _miscounted_messages(conversation_ids: Sequence[int], every: int) -> Iterator[Finding]:
    for conversation_id, message_id, content, kept, counter, chained, is_plain, sealed in streamed(
        _MESSAGES, conversation_ids, every=every
    ):
        tokens = TokenEstimator(encoding=counter)
        if tokens.name != counter:
            yield Finding(conversation_id, f"msg_{message_id}", f"was counted by {counter}, which is not known here")
        elif is_plain:
            if (count := tokens.count(content)) != kept and content_hash(content) == bytes(sealed):
                yield Finding(conversation_id, f"msg_{message_id}", f"costs {count} tokens, not {kept}")
        else:
            [message] = messages_of([message_id])
            count = count_of(message, column=content, chained=chained, tokens=tokens)
            if count != kept and message.content_hash == content_hash(message.content).hex():
                yield Finding(conversation_id, f"msg_{message_id}", f"costs {count} tokens, not {kept}")


def _miscounted_summaries(conversation_ids: Sequence[int], every: int) -> Iterator[Finding]:
    for conversation_id, summary_id, content, kept, counter in streamed(_SUMMARIES, conversation_ids, every=every):
        tokens = TokenEstimator(encoding=counter)
        if tokens.name != counter:
            yield Finding(conversation_id, summary_id, f"was counted by {counter}, which is not known here")
        elif (count := tokens.count(content)) != kept:
            yield Finding(conversation_id, summary_id, f"costs {count} tokens, not {kept}")


def count_of(message: MessageRecord, *, column: str, chained: int, tokens: TokenEstimator) -> int:
    """What a message costs, from all that is known of it; `column` is what stands for its content in a search."""
    parts = [part for part in message.parts if part.ordinal < chained]
    whole = message.content if column == storable(message.content) else searchable(message.content, parts)
    thought = reasoning_in(parts)
    return tokens.count(whole) + (tokens.count(thought) if thought else 0)
