"""Find or open the conversation that a request belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q, QuerySet

from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.store.conversations import ConversationStore
from conversations.types import ParentLink, Role
from lcmsite.gateway.recording.exchange import Exchange
from lcmsite.gateway.recording.session_finding import OWN_HEADER, Session, session_of
from lcmsite.gateway.surfaces import ReadRequest, Task
from lcmsite.gateway.surfaces_digest import KEY_PREFIX, START_CHAIN, links_of
from lcmsite.models import GatewayExchange

# The same first question within this time is a retry; later, it begins another session.
RETRIED_WITHIN = timedelta(minutes=10)
MOST_CHAINS = 200
NO_SESSION = "gateway/side"


@dataclass(frozen=True)
class Location:
    """A request's conversation, and the chain hash and seq its messages continue."""

    conversation_id: int
    source: str
    chain: bytes = START_CHAIN
    seq: int = 0
    # The conversation has messages, none of which came through the gateway.
    is_foreign: bool = False


def locate(exchange: Exchange, request: ReadRequest, store: ConversationStore, *, is_side: bool) -> Location:
    """Find where a request belongs; opens a conversation if there is none."""
    session = session_of(exchange.headers, request.body)
    if request.parent_response is not None:
        answered = _exchanges(store).filter(response_id=request.parent_response).order_by("-exchange_id").first()
        if exchange.task is Task.RETRIEVE and (answered is None or answered.is_complete or answered.side):
            # A retrieved answer may have other thoughts than the one that was recorded.
            raise Invalid("No recorded request waits for this answer.", code="unknown_response")
        if answered is not None:
            chain, seq = answered.request_chain, answered.request_seq
            if answered.answer_chain is not None and exchange.task is not Task.RETRIEVE:
                chain, seq = answered.answer_chain, answered.answer_seq or seq
            return Location(answered.conversation_id, "previous_response_id", bytes(chain), seq)
    if request.vendor_conversation is not None and request.vendor_conversation.isprintable():
        session = session or Session(f"gateway/{request.vendor_conversation[:400]}", "conversation")
    if session is not None:
        source, conversation_id = session.source, _open_session(session, store)
    else:
        source = "prefix"
        unnamed = Session(NO_SESSION if is_side else f"gateway/{exchange.exchange_key}", source)
        conversation_id = _find_by_prefix(exchange, request, store) or _open_session(unnamed, store)
    if request.is_delta:
        return _locate_behind_newest(conversation_id, source, store)
    return Location(conversation_id, source, is_foreign=source == OWN_HEADER and _is_foreign(conversation_id))


def find_conversation(exchange: Exchange, request: ReadRequest, store: ConversationStore) -> int | None:
    """Return the id of a request's conversation, or None; opens none."""
    session = session_of(exchange.headers, request.body)
    if session is None:
        return _find_by_prefix(exchange, request, store)
    found = store.scope.narrow(Conversation.objects.filter(session_id=session.name))
    return found.values_list("pk", flat=True).first()


def _locate_behind_newest(conversation_id: int, source: str, store: ConversationStore) -> Location:
    """Return the location after the newest answer of a conversation."""
    answered = _exchanges(store).filter(conversation_id=conversation_id, side="", answer_seq__isnull=False)
    newest = answered.order_by("-exchange_id").first()
    if newest is None or newest.answer_chain is None or newest.answer_seq is None:
        return Location(conversation_id, source, START_CHAIN, Conversation.objects.get(pk=conversation_id).head_seq)
    return Location(conversation_id, source, bytes(newest.answer_chain), newest.answer_seq)


def _open_session(session: Session, store: ConversationStore) -> int:
    """Find or open a session's conversation, a child of its parent's; return the id."""
    if session.parent is None or session.parent == session.name:
        return store.open_conversation(session_id=session.name).conversation_id
    existing = store.scope.narrow(Conversation.objects.filter(session_id=session.name))
    if (found := existing.filter(parent__isnull=False).values_list("pk", flat=True).first()) is not None:
        return int(found)
    _open_session(Session(session.parent, session.source, session.grandparent), store)
    opened = store.open_conversation(
        session_id=session.name, parent_session_id=session.parent, parent_link=ParentLink.SUBAGENT
    )
    return opened.conversation_id


def _find_by_prefix(exchange: Exchange, request: ReadRequest, store: ConversationStore) -> int | None:
    """Return the id of the conversation that has most of this history, or None."""
    links = list(links_of(message.digest for message in request.messages))
    # The newest exchange of the session ends near the end of this history.
    chains = list(dict.fromkeys(link.chain for link in links))[-MOST_CHAINS:]
    rows = _exchanges(store).filter(Q(request_chain__in=chains) | Q(answer_chain__in=chains), side="")
    first_answer = next(
        (index for index, each in enumerate(request.messages) if each.message.role is Role.ASSISTANT), len(links)
    )
    answered = {link.chain for link in links[first_answer:]}
    began, ended = exchange.received_at - RETRIED_WITHIN, exchange.received_at + RETRIED_WITHIN
    is_retry = Q(received_at__range=(began, ended)) | Q(exchange_key=exchange.exchange_key)
    # Thousands of sessions may begin with one question: only those with its answer, too, are read.
    rows = rows.filter(Q(request_chain__in=answered) | Q(answer_chain__in=answered) | is_retry)
    indexes = {link.chain: index for index, link in enumerate(links)}
    found = [
        (max(indexes.get(bytes(chain or b""), -1) for chain in ends), received_at, conversation_id)
        for received_at, conversation_id, *ends in rows.values_list(
            "received_at", "conversation_id", "request_chain", "answer_chain"
        )
    ]
    return max(found)[2] if found else None


def _is_foreign(conversation_id: int) -> bool:
    messages = Conversation.objects.get(pk=conversation_id).messages
    if not messages.exists() or messages.filter(idempotency_key__startswith=KEY_PREFIX).exists():
        return False
    # Messages that were erased have lost their keys.
    is_erased = messages.filter(erased_by__isnull=False).exists()
    return not (is_erased and GatewayExchange.objects.filter(conversation_id=conversation_id, side="").exists())


def _exchanges(store: ConversationStore) -> QuerySet[GatewayExchange]:
    return store.scope.narrow(GatewayExchange.objects.all())
