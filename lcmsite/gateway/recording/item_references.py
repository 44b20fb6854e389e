"""Replace references to items of earlier answers by the stored items.

Where OpenAI stores the answers, clients such as the Vercel AI SDK send `{"type": "item_reference", "id": ...}` in place
of an item that they received.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from conversations.formats.openai_responses import NOTE, to_openai_responses
from conversations.models import Conversation, Message
from conversations.scope import Scope
from conversations.store.read import messages_of
from lcmsite.gateway.recording.exchange import Exchange
from lcmsite.gateway.recording.session_finding import session_of
from lcmsite.gateway.surfaces import ReadRequest, Row, wire_message
from lcmsite.gateway.surfaces_digest import links_of
from lcmsite.models import GatewayExchange

# How many conversations that begin alike are searched, the newest first.
MOST_CONVERSATIONS = 200


def with_referenced_items(exchange: Exchange, request: ReadRequest, scope: Scope) -> ReadRequest:
    """Return the request with its referenced items; one that is not stored stays."""
    ids = {each.index: item_id for each in request.messages if (item_id := _referenced_id(each.row))}
    if not ids or request.is_delta:
        return request
    items = _items(_conversations_of(exchange, request, before=min(ids), scope=scope), ids.values())
    messages = tuple(
        wire_message(exchange.surface, each.index, items[ids[each.index]]) if ids.get(each.index) in items else each
        for each in request.messages
    )
    return replace(request, messages=messages)


def _referenced_id(row: Row) -> str:
    item_id = row.get("id")
    is_reference = row.get("type") == "item_reference" and isinstance(item_id, str) and item_id.isprintable()
    return str(item_id) if is_reference else ""


def _conversations_of(exchange: Exchange, request: ReadRequest, *, before: int, scope: Scope) -> list[int]:
    """Return the ids of the conversations that may have the items."""
    session = session_of(exchange.headers, request.body)
    if session is not None:
        named = scope.narrow(Conversation.objects.filter(session_id=session.name))
        return list(named.values_list("pk", flat=True))
    links = list(links_of(each.digest for each in request.messages if each.index < before))
    if not links:
        return []
    alike = scope.narrow(GatewayExchange.objects.filter(request_chain=links[-1].chain, side=""))
    return list(alike.order_by("-exchange_id").values_list("conversation_id", flat=True)[:MOST_CONVERSATIONS])


def _items(conversation_ids: list[int], ids: Iterable[str]) -> dict[str, Row]:
    """Return the stored items with these ids."""
    has_id = {f"metadata__{NOTE}__add__id__in": list(ids)}
    stored = Message.objects.filter(conversation_id__in=conversation_ids, **has_id).order_by("seq")
    items = (to_openai_responses(each) for each in messages_of(list(stored.values_list("pk", flat=True))))
    return {item["id"]: item for item in items if "id" in item and item.get("type") != "item_reference"}
