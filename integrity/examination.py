"""Check conversations against every invariant, and record which ones are clean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db.models import F, QuerySet, TextField
from django.db.models.expressions import RawSQL

from conversations.models import Conversation
from integrity.invariants import Found, Invariant
from integrity.models import ConversationCheck
from integrity.types import Finding

# The limits of one batch: large enough for set-based queries to be efficient, small enough to keep results small.
BATCH_MESSAGES = 200_000
BATCH_CONVERSATIONS = 2_000


# Every write to a conversation updates its row, and every update gives the row a new xmin and ctid.
_VERSION = RawSQL("conversations.xmin::text || ' ' || conversations.ctid::text", (), output_field=TextField())


@dataclass
class Examination:
    """The findings so far, by invariant code."""

    invariants: Sequence[Invariant]
    thorough: bool = True
    # Called after each invariant with the seconds that it took. A background scan pauses in this function.
    rest: Callable[[float], None] = lambda seconds: None
    found: dict[str, Found] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    conversations: int = 0
    messages: int = 0

    def check(self, batch: Mapping[int, int]) -> None:
        """Check a batch: a mapping of conversation ids to their numbers of messages.

        A batch with findings is checked thoroughly: a sample would not show whether they are resolved.
        """
        thorough = self.thorough or ConversationCheck.objects.filter(pk__in=batch, is_clean=False).exists()
        for invariant in self.invariants:
            if not invariant.of_the_site:
                self._add(invariant.code, partial(invariant.check, list(batch), thorough=thorough))
        self.conversations += len(batch)
        self.messages += sum(batch.values())

    def check_site_rows(self, workspace_id: int | None) -> None:
        """Check the rows that belong to no conversation, of one workspace or of all."""
        for invariant in self.invariants:
            if invariant.of_the_site:
                self._add(invariant.code, partial(invariant.find, workspace_id))

    def _add(self, code: str, check: Callable[[], Found]) -> None:
        started = time.perf_counter()
        self.found[code] = self.found.get(code, Found()) + check()
        taken = time.perf_counter() - started
        self.seconds[code] = self.seconds.get(code, 0.0) + taken
        self.rest(taken)

    @property
    def counts(self) -> dict[str, int]:
        """The number of violations of each invariant."""
        return {code: found.count for code, found in self.found.items()}

    @property
    def costs(self) -> dict[str, int]:
        """The milliseconds that each invariant took."""
        return {code: round(1000 * seconds) for code, seconds in self.seconds.items()}

    @property
    def listed_findings(self) -> set[tuple[str, Finding]]:
        """All listed findings, each with the code of its invariant."""
        return {(code, finding) for code, found in self.found.items() for finding in found.findings}

    def lists_all(self, code: str) -> bool:
        """Whether all findings of this invariant are listed."""
        found = self.found.get(code, Found())
        return len(found.findings) == found.count

    def is_clean(self, conversation_id: int) -> bool:
        """Whether this conversation has no finding.

        If an invariant has more findings than are listed, the result is False for every conversation, to be safe.
        """
        return not any(
            not self.lists_all(code) or any(each.conversation_id == conversation_id for each in found.findings)
            for code, found in self.found.items()
        )


def batches_of(rows: QuerySet[Conversation]) -> Iterator[dict[int, int]]:
    """Yield batches of conversation ids with their numbers of messages."""
    batch: dict[int, int] = {}
    in_order = rows.order_by("conversation_id").values_list("conversation_id", "next_seq")
    for id, next_seq in in_order.iterator(chunk_size=BATCH_CONVERSATIONS):
        batch[id] = next_seq - 1
        if len(batch) == BATCH_CONVERSATIONS or sum(batch.values()) >= BATCH_MESSAGES:
            yield batch
            batch = {}
    if batch:
        yield batch


def changed_since_clean(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Select the conversations that were not found clean at their current version."""
    return conversations.annotate(row_version=_VERSION).exclude(
        integrity_check__is_clean=True, integrity_check__row_version=F("row_version")
    )


def versions_of(conversation_ids: Iterable[int]) -> dict[int, str]:
    """Return the versions of these conversations' rows."""
    found = Conversation.objects.filter(pk__in=list(conversation_ids)).annotate(row_version=_VERSION)
    return dict(found.values_list("pk", "row_version"))


def note_checked(versions: Mapping[int, str], examined: Examination, *, checked_at: datetime) -> None:
    """Record that these conversations were checked, at these versions."""
    ConversationCheck.objects.bulk_create(
        [
            ConversationCheck(
                conversation_id=conversation_id,
                checked_at=checked_at,
                is_clean=examined.is_clean(conversation_id),
                row_version=version,
            )
            for conversation_id, version in sorted(versions.items())
        ],
        batch_size=1_000,
        update_conflicts=True,
        unique_fields=["conversation"],
        update_fields=["checked_at", "is_clean", "row_version"],
    )
