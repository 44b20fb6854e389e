"""Store cuts as boundaries, and read summaries, for assemble mode.

Here the gateway acts as a host that compacts: each cut is a boundary with its own name, which `verify_coverage` checks
like a boundary of any other host.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import structlog

from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from compaction.rendering import render_summary
from compaction.run import retrying_while_busy
from compaction.types import Reason
from conversations.errors import Conflict, ConversationBusy
from conversations.models import Conversation
from lcmsite.connections import closing_connections
from lcmsite.gateway.recording.exchange_journal import LOOKUPS
from lcmsite.gateway.recording.recorder import bounded_transaction
from lcmsite.gateway.window.types import Cut, ShownSummary, StoredCut
from lcmsite.gateway.window.unfolding import StoredLookups
from retrieval.assembly.assembled_items import read_summaries
from retrieval.assembly.context_slots import withheld_ids

logger = structlog.get_logger(__name__)

# How long a request waits for new summaries. A later request uses those that are ready after this time.
COMPACTION_SECONDS = 5.0
# How many of the newest cuts are tried; after a rewind, an older one may apply.
_MOST_CUTS = 20
_METADATA_KEY = "gateway_window"
# Only this many of the newest lookups are put back: older ones belong to answers that are left out anyway.
_MOST_LOOKUPS = 200


@dataclass(frozen=True)
class StoredMemory:
    """The cuts and summaries of one conversation."""

    conversation: Conversation
    engine: CompactionEngine

    def stored_cuts(self, window: int) -> Iterator[StoredCut]:
        """Yield the cuts made for this window, the newest first."""
        with bounded_transaction():
            recorded = self._host.list_boundaries(conversation_id=self.conversation.pk, limit=_MOST_CUTS)
        found = ((each.metadata.get(_METADATA_KEY), each.last_seq) for each in recorded)
        return (
            _parse_cut(values, last_seq)
            for values, last_seq in found
            if isinstance(values, dict) and values.get("window") == window
        )

    def read_lookups(self) -> StoredLookups:
        """Return the newest lookups, by the seq of the answer that the agent got."""
        newest = self.conversation.journal_entries.filter(subpath=LOOKUPS, entry__isnull=False).order_by("-position")
        with bounded_transaction():
            rows = list(newest.values_list("uuid", "entry")[:_MOST_LOOKUPS])
        return {int(str(seq)): json.loads(str(entry)) for seq, entry in rows}

    def store_cut(self, stored: StoredCut) -> None:
        """Record a cut as a boundary, unless another request has just recorded it."""
        values = {**asdict(stored.cut), "window": stored.window, "summary_tokens": stored.summary_tokens}
        values |= {"summary_ids": list(stored.summary_ids), "pinned_seqs": list(stored.cut.pinned_seqs)}
        values["newest_seq"] = values.pop("made_at_seq")
        try:
            with bounded_transaction():
                self._host.record_boundary(
                    conversation_id=self.conversation.pk,
                    host_reference=f"gateway/{stored.window}/{stored.last_seq}/{stored.cut.made_at_seq}",
                    last_seq=stored.last_seq,
                    metadata={_METADATA_KEY: values},
                )
        except Conflict:
            logger.info("gateway_cut_recorded_before", conversation_id=self.conversation.pk)

    def active_summaries(self) -> list[ShownSummary]:
        """Return the summaries in the active context, in order."""
        items = self.conversation.context_items.filter(summary__isnull=False).order_by("ordinal")
        with bounded_transaction():
            summary_ids = list(items.values_list("summary_id", flat=True))
        return self.find_summaries(summary_ids)

    def find_summaries(self, summary_ids: Sequence[str]) -> list[ShownSummary]:
        """Read these summaries, without quarantined ones."""
        with bounded_transaction():
            withheld = withheld_ids(self.conversation)
            found = read_summaries(summary_ids)
        return [
            ShownSummary(each, found[each].first_seq, found[each].last_seq, render_summary(found[each]))
            for each in summary_ids
            if each in found and each not in withheld
        ]

    def compact(self) -> None:
        """Compact in a thread, and wait for it no longer than COMPACTION_SECONDS."""
        work = threading.Thread(
            target=closing_connections, args=(self._compact,), name="gateway-compaction", daemon=True
        )
        work.start()
        work.join(COMPACTION_SECONDS)

    def _compact(self) -> None:
        again = retrying_while_busy(COMPACTION_SECONDS)
        try:
            again(self.engine.compact, conversation_id=self.conversation.pk, reason=Reason.MANUAL)
        except ConversationBusy:
            # The request goes on without new summaries, as after an error.
            return
        except Exception as error:
            logger.warning("gateway_compaction_failed", exc_info=error)

    @property
    def _host(self) -> HostCompaction:
        return HostCompaction(engine=self.engine)


def _parse_cut(values: Mapping[str, Any], last_seq: int) -> StoredCut:
    return StoredCut(
        cut=Cut(
            opening_seq=values["opening_seq"],
            pinned_seqs=tuple(values["pinned_seqs"]),
            first_seq=values["first_seq"],
            most_result_tokens=values["most_result_tokens"],
            most_system_tokens=values.get("most_system_tokens"),
            made_at_seq=values["newest_seq"],
        ),
        window=values["window"],
        summary_ids=tuple(values["summary_ids"]),
        summary_tokens=values["summary_tokens"],
        last_seq=last_seq,
    )
