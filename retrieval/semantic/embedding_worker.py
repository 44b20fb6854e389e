"""Embed messages in the background, conversation by conversation, in batches.

A process runs at most one worker. It ends after a time slice, so that other tasks can run. Each batch is stored before
the next one begins, so a worker that dies loses at most one batch. No database transaction is open during a call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.embeddings import MOST_TEXTS, EmbedderPolicy, EmbeddingClient
from compaction.llm.protocols import LONGEST_RETRY_AFTER_SECONDS
from compaction.llm.types import BadAnswer, ContextLength, Denied, ModelFailed, Refused
from conversations.sql import array, execute, rows, texts
from conversations.work.queue import Lease, LeaseLost, WorkQueue, no_wake_up
from retrieval.semantic.embedders import PROBE, PROGRESS, Embedders, passages_client, wake_workers
from retrieval.semantic.message_passages import passages_of
from retrieval.semantic.models import EmbeddedConversation, Embedder
from retrieval.semantic.vector_table import StoredPassage, TextOfMessage, VectorTable

logger = structlog.get_logger(__name__)

# The number of messages that are read at once; the time slice of a worker, and its lease of a conversation.
MESSAGES_AT_ONCE = 64
SLICE_SECONDS, LEASE_SECONDS = 20.0, 300.0
# How long an embedder is paused after an error that gives no time for a retry.
PAUSE_SECONDS = 30.0
# The maximum number of attempts for a text that fails while other texts succeed. The pauses between them double.
MOST_TRIES = 5

_at_work = threading.Lock()

# A passage, and the reason why it has no vector.
Refusal = tuple[StoredPassage, str]


class TextFailed(Exception):
    """The embedder fails for one text, and succeeds for others."""


@dataclass(frozen=True)
class EmbeddingWorker:
    """Embeds conversations, one after the other, for all embedders."""

    policy: EmbedderPolicy
    models: ModelsPolicy
    slice_seconds: float = SLICE_SECONDS
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def from_settings(cls) -> EmbeddingWorker:
        return cls(EmbedderPolicy.from_settings(), ModelsPolicy.from_settings())

    def sweep(self) -> None:
        """Queue conversations with new messages, and embed the due ones."""
        if not self.policy.embedder_url:
            return
        queue_of(self._embedders.at_work()).limit_waits()
        for embedder_id in self._embedders.at_work().values_list("pk", flat=True):
            execute(PROGRESS["queue_conversations"], {"embedder_id": embedder_id})
        self.work()

    def work(self) -> None:
        """Embed until nothing is due or the time slice ends; then wake the next worker.

        Does nothing if this process already runs a worker.
        """
        if not self.policy.embedder_url or not _at_work.acquire(blocking=False):
            return
        try:
            paused = self._work()
            self._embedders.switch_if_complete()
        finally:
            _at_work.release()
        delays = [*paused.values(), *self._seconds_to_next(self._at_work_but(paused))]
        if delays:
            wake_workers(min(delays))

    @property
    def _embedders(self) -> Embedders:
        return Embedders(self.policy, self.models)

    def _at_work_but(self, paused: Collection[int]) -> QuerySet[Embedder]:
        return self._embedders.at_work().exclude(pk__in=paused)

    def _work(self) -> dict[int, float]:
        """Embed for a time slice; return the pause in seconds of each failing embedder."""
        until = self.clock() + self.slice_seconds
        paused: dict[int, float] = {}
        embedders = self._at_work_but(paused)
        while self.clock() < until and (lease := queue_of(embedders).claim(lease_seconds=LEASE_SECONDS)) is not None:
            embedder = embedders.filter(pk=lease.row.embedder_id).first()
            if embedder is None:
                continue
            client = passages_client(embedder, self.policy, self.models)
            work = ConversationEmbedding(lease=lease, table=VectorTable.of(embedder), client=client)
            with lease.attempt():
                pause = work.carry_out(is_over=lambda: self.clock() >= until)
                if pause is not None:
                    paused[embedder.pk] = pause
                    embedders = self._at_work_but(paused)
        return paused

    def _seconds_to_next(self, embedders: QuerySet[Embedder]) -> list[float]:
        """The seconds until a conversation of these embedders is due; empty if none is."""
        values = {"embedders": array(embedders.values_list("pk", flat=True))}
        [(seconds,)] = rows(PROGRESS["seconds_to_next"], values)
        return [] if seconds is None else [max(1.0, seconds)]


def queue_of(embedders: QuerySet[Embedder]) -> WorkQueue[EmbeddedConversation]:
    """The work queue of the conversations of these embedders."""
    return WorkQueue(
        rows=lambda: EmbeddedConversation.objects.filter(embedder__in=embedders.values("pk")),
        wake=no_wake_up,
        first_backoff_seconds=2.0,
        longest_backoff_seconds=LONGEST_RETRY_AFTER_SECONDS,
    )


@dataclass(frozen=True)
class ConversationEmbedding:
    """Embeds one conversation, from the position at which the last worker stopped."""

    lease: Lease[EmbeddedConversation]
    table: VectorTable
    client: EmbeddingClient

    def carry_out(self, *, is_over: Callable[[], bool]) -> float | None:
        """Embed the rest of the conversation, or a part of it if the time is over.

        If the embedder cannot be called, returns for how many seconds to pause it; otherwise None.
        """
        after, conversation_id = self.lease.row.upto_seq, self.lease.row.conversation_id
        # The number of attempts for the next batch, including this one.
        tries = self.lease.attempts
        while found := self.table.next_texts(conversation_id=conversation_id, after=after, most=MESSAGES_AT_ONCE):
            for upto, passages in _batches(found):
                if is_over():
                    self.lease.release(attempts=tries - 1)
                    return None
                try:
                    stored, refused = self._vectors(passages, is_last=tries >= MOST_TRIES)
                except TextFailed as failed:
                    self.lease.release(attempts=tries, error=str(failed), delay_seconds=PAUSE_SECONDS * 2**tries)
                    return None
                except ModelFailed as failed:
                    return self._back_off(failed)
                self._store(stored, refused, after=after, upto=upto)
                after, tries = upto, 1
        self.lease.finish()
        return None

    def _store(self, passages: Sequence[StoredPassage], refused: Sequence[Refusal], *, after: int, upto: int) -> None:
        with transaction.atomic():
            stored = self.table.store(passages, conversation_id=self.lease.row.conversation_id) if passages else 0
            values = {
                "job_id": self.lease.row.pk,
                "fence": self.lease.fence,
                "after": after,
                "upto": upto,
                "passages": stored,
                "refused": self._set_aside(refused) if refused else 0,
            }
            if not execute(PROGRESS["advance"], values):
                raise LeaseLost(f"Conversation {self.lease.row.conversation_id} is embedded by another worker.")

    def _set_aside(self, refused: Sequence[Refusal]) -> int:
        """Store refused passages with their reasons; return the number of new ones."""
        values = {
            "embedder_id": self.table.embedder_id,
            "messages": array(passage.message_id for passage, _ in refused),
            "passages": array(passage.number for passage, _ in refused),
            "reasons": texts(reason for _, reason in refused),
        }
        return execute(PROGRESS["set_aside"], values)

    def _vectors(
        self, passages: Sequence[tuple[StoredPassage, str]], *, is_last: bool
    ) -> tuple[list[StoredPassage], list[Refusal]]:
        """Embed passages; return those with a vector, and the refused ones.

        Raises TextFailed if the embedder fails for a passage. With `is_last`, such a passage counts as refused instead.
        """
        found: list[StoredPassage] = []
        refused: list[Refusal] = []
        waiting = [passages[first : first + MOST_TEXTS] for first in range(0, len(passages), MOST_TEXTS)]
        while waiting:
            some = waiting.pop(0)
            # Renewed before each call, because a call may take a long time.
            self.lease.renew()
            try:
                vectors = self.client.embed([text for _, text in some])
            except ModelFailed as failed:
                if not self._is_of_texts(failed):
                    raise
                if len(some) > 1:
                    # Only one of the texts may be the cause, so each is tried separately.
                    waiting[:0] = [[one] for one in some]
                elif is_last or isinstance(failed, Refused | ContextLength):
                    refused.append((some[0][0], str(failed)))
                else:
                    raise TextFailed(str(failed)) from failed
            else:
                found += [passage._replace(vector=each) for (passage, _), each in zip(some, vectors, strict=True)]
        return found, refused

    def _is_of_texts(self, failed: ModelFailed) -> bool:
        """Whether these texts are the cause of the failure: another text succeeds."""
        if isinstance(failed, Refused | ContextLength):
            return not isinstance(failed, Denied)
        is_fault = isinstance(failed, BadAnswer) or (failed.status is not None and failed.status >= 500)
        if not is_fault or failed.retry_after is not None:
            return False
        try:
            self.client.embed([PROBE])
        except ModelFailed:
            return False
        return True

    def _back_off(self, failed: ModelFailed) -> float:
        """Release the conversation until the embedder can be called again.

        This does not count as an attempt, because the conversation is not the cause. Returns the seconds until then.
        """
        seconds = failed.retry_after or PAUSE_SECONDS
        if failed.retry_at is not None:
            seconds = max(1.0, (failed.retry_at - timezone.now()).total_seconds())
        logger.warning("embedding_put_off", reason=failed.reason.value, seconds=round(seconds))
        self.lease.release(error=str(failed), delay_seconds=seconds)
        return seconds


def _batches(found: Sequence[TextOfMessage]) -> Iterator[tuple[int, list[tuple[StoredPassage, str]]]]:
    """Yield the passages of messages in batches, each with its last seq.

    All passages of a message are in one batch, because they are stored together. A batch fits one call, unless a single
    message has more passages.
    """
    batch: list[tuple[StoredPassage, str]] = []
    last_seq = found[0].seq - 1
    for message in found:
        own = list(_passages_of(message))
        if batch and len(batch) + len(own) > MOST_TEXTS:
            yield last_seq, batch
            batch = []
        batch += own
        last_seq = message.seq
    yield last_seq, batch


def _passages_of(message: TextOfMessage) -> Iterator[tuple[StoredPassage, str]]:
    if message.text:
        for number, place in enumerate(passages_of(message.text)):
            yield StoredPassage(message.message_id, number, place, ()), message.text[place.start : place.end]
