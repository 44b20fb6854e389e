"""Store in the journal the parts of an exchange that are not messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.store.journal import Journal
from lcmsite.gateway.surfaces import ReadRequest
from lcmsite.gateway.surfaces_digest import without_injected

logger = structlog.get_logger(__name__)

# System prompts and tools; the host's side requests; stored messages that came back changed.
INSTRUCTIONS, SIDE, ALTERED = "gateway/instructions", "gateway/side", "gateway/altered"
# The choices after the first, if the request set `n` above 1.
ALTERNATIVES = "gateway/alternatives"
# Lookups made within answers, each under the seq of the answer that the agent got.
LOOKUPS = "gateway/lookups"


@dataclass(frozen=True)
class ExchangeJournal:
    """Entries under `gateway/...` in the journal of a conversation."""

    journal: Journal

    def store_instructions(self, conversation: Conversation, request: ReadRequest) -> None:
        entries = []
        for row in request.instructions:
            words = without_injected(json.dumps({**row, "cache_control": None}, sort_keys=True))
            if not str(row.get("text", "")).startswith("x-anthropic-billing-header:"):
                entries.append({"uuid": _uuid_of("system", words), "type": "system", "row": row})
        if request.tools:
            words = json.dumps(request.tools, sort_keys=True)
            entries.append({"uuid": _uuid_of("tools", words), "type": "tools", "tools": list(request.tools)})
        self.append(conversation, INSTRUCTIONS, entries)

    def append(self, conversation: Conversation, subpath: str, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append entries not stored yet; if the journal refuses them, log a warning."""
        known = set(
            conversation.journal_entries.filter(
                subpath=subpath, uuid__in=[entry["uuid"] for entry in entries]
            ).values_list("uuid", flat=True)
        )
        fresh = list({entry["uuid"]: entry for entry in entries if entry["uuid"] not in known}.values())
        if not fresh:
            return
        try:
            self.journal.append_entries(conversation_id=conversation.pk, entries=fresh, subpath=subpath)
        except Invalid as refusal:
            logger.warning("gateway_journal_refused", conversation_id=conversation.pk, code=refusal.code)


def _uuid_of(kind: str, words: str) -> str:
    return f"{kind}-{hashlib.sha256(words.encode()).hexdigest()[:32]}"
