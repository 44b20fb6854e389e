"""Messages as somebody's API would be given them, checked by what that API demands."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from conversations.content.flattening import flattened
from conversations.formats import RENDERERS
from conversations.formats.rendered import MessageFormat, RepairKind
from conversations.types import ContextItemType, NewMessage, NewPart, PartRecord, PartType, Role
from retrieval.assembly.types import AssembledContext, AssembledItem, BudgetSource, LeftOut
from tests.factories import a_tool_call, a_tool_result
from tests.retrieval.vendors import CHECKS

PNG = "data:image/png;base64,iVBORw0KGgo="


def items_of(*messages: NewMessage) -> list[AssembledItem]:
    """The items that a context of these messages has."""
    return [
        AssembledItem(
            id=f"msg_{seq}",
            kind=ContextItemType.MESSAGE,
            role=message.role,
            first_seq=seq,
            last_seq=seq,
            tokens=10,
            text=flattened(message.parts) if message.content is None else message.content,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
            author=message.author,
            metadata=message.metadata,
            parts=tuple(PartRecord(**vars(part)) for part in message.parts),
        )
        for seq, message in enumerate(messages, start=1)
    ]


def shown(format: str, *messages: NewMessage) -> AssembledContext:
    """The context of these messages in a format, valid for its vendor."""
    rendered = RENDERERS[MessageFormat(format)](items_of(*messages))
    context = AssembledContext(
        conversation_id=1,
        budget=1000,
        budget_source=BudgetSource.REQUEST,
        total_tokens=10,
        over_budget=False,
        items=(),
        left_out=LeftOut(0, 0, 0),
        receipt=(),
        **vars(rendered),
    )
    CHECKS[format](context)
    return context


def repaired(context: AssembledContext) -> dict[RepairKind, tuple[str, ...]]:
    return {repair.kind: repair.item_ids for repair in context.repairs}


def user(text: str, **more: Any) -> NewMessage:
    return NewMessage(Role.USER, text, **more)


def assistant(text: str, *parts: NewPart) -> NewMessage:
    return NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.TEXT, text_content=text), *parts))


EXCHANGE = (user("Read a.py."), a_tool_call("call_1", path="a.py"), a_tool_result("call_1", "contents"))
