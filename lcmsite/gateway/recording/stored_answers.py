"""Look up stored answers that agents may send back in another form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from conversations.models import Conversation, Message
from lcmsite.gateway.recording.exchange_journal import ALTERED
from lcmsite.gateway.recording.prefix_match import CallingAnswer
from lcmsite.gateway.surfaces_digest import calls_in, words_in
from lcmsite.models import GatewayExchange


def incomplete_answers(
    conversation: Conversation, chains: Collection[bytes]
) -> Mapping[bytes, Sequence[tuple[int, str | None]]]:
    """Return the incomplete answers that follow these chain hashes.

    The text of an erased answer is None.
    """
    found: dict[bytes, list[tuple[int, str | None]]] = {}
    for chain, answer in _answers(conversation, chains, is_complete=False):
        found.setdefault(chain, []).append((answer.seq, answer.content if answer.erased_by_id is None else None))
    return found


def answers_with_calls(
    conversation: Conversation, chains: Collection[bytes]
) -> Mapping[bytes, Sequence[CallingAnswer]]:
    """Return the complete answers with calls that follow these chain hashes."""
    found: dict[bytes, list[CallingAnswer]] = {}
    for chain, answer in _answers(conversation, chains, is_complete=True):
        if calls := calls_in(answer):
            is_erased = answer.erased_by_id is not None
            found.setdefault(chain, []).append(CallingAnswer(answer.seq, words_in(answer), calls, is_erased))
    return found


def keys_of_altered(conversation: Conversation, *, most: int) -> list[str]:
    """Return the keys of the newest messages that came back in another form."""
    altered = conversation.journal_entries.filter(subpath=ALTERED).order_by("-position")
    return [str(key) for key in altered.values_list("uuid", flat=True)[:most]]


def _answers(
    conversation: Conversation, chains: Collection[bytes], *, is_complete: bool
) -> list[tuple[bytes, Message]]:
    rows = GatewayExchange.objects.filter(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        request_chain__in=chains,
        is_complete=is_complete,
        answer_seq__isnull=False,
    )
    chains_of = [(bytes(chain), seq) for chain, seq in rows.values_list("request_chain", "answer_seq")]
    messages = conversation.messages.filter(seq__in=[seq for _, seq in chains_of]).prefetch_related("parts")
    by_seq = {message.seq: message for message in messages}
    return [(chain, by_seq[seq]) for chain, seq in chains_of if seq in by_seq]
