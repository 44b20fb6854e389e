"""Set up, monitor and remove embedders: embedding models with their vectors.

A new model is set up while another one is in use. It replaces that one when it has embedded everything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pglock
import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.embeddings import (
    EMBEDDER,
    PASSAGES_SECONDS,
    QUESTION_SECONDS,
    EmbedderPolicy,
    EmbeddingClient,
    endpoint_key,
)
from compaction.llm.guards import Guard
from compaction.llm.types import Misconfigured, ModelFailed
from conversations.errors import Invalid, NotFound, Unavailable
from conversations.sql import execute, load, rows
from conversations.work import queue
from conversations.work.queue import WorkState
from retrieval.semantic.models import Embedder
from retrieval.semantic.types import EmbedderRecord, EmbedderState, IndexState, SemanticStatus
from retrieval.semantic.vector_table import WIDEST, VectorTable, pgvector_version, require_pgvector

logger = structlog.get_logger(__name__)

PROGRESS = load("retrieval/semantic/progress.sql")
# The share of the spending limit that background work may use. The rest is reserved for questions.
SHARE_OF_BACKGROUND = 0.8
# The status lists at most this many refused passages.
MOST_REFUSALS = 5
PROBE = "What was said about the port of the database?"


def wake_workers(delay_seconds: float = 0.0) -> None:
    """Wake a worker for embedding after a delay."""
    queue.wake("retrieval.tasks.embed_messages", delay_seconds=delay_seconds)


@dataclass(frozen=True)
class Embedders:
    """The embedders of the site, which all workspaces share."""

    policy: EmbedderPolicy
    models: ModelsPolicy

    @classmethod
    def from_settings(cls) -> Embedders:
        return cls(EmbedderPolicy.from_settings(), ModelsPolicy.from_settings())

    def set_up(self) -> SemanticStatus:
        """Create the vector table of the configured model, and begin to fill it.

        Until this model has embedded everything, searches use the previous model. Passages that the new model refused
        earlier are tried again. Fails with `no_embedder` for unusable settings, with `no_pgvector` without pgvector,
        and with `embedder_unavailable` if the model does not respond.
        """
        try:
            self.policy.require_usable()
        except Misconfigured as wrong:
            raise Invalid(f"{wrong.detail[:1].upper()}{wrong.detail[1:]}.", code="no_embedder") from wrong
        require_pgvector()
        dimension = self._dimension()
        with transaction.atomic():
            # The lock serializes concurrent calls, so that the second one finds the embedder of the first.
            pglock.advisory("lcm.embedding.setup", xact=True).acquire()
            embedder = Embedder.objects.select_for_update().filter(**self._configured).first()
            if embedder is not None and (embedder.dimension != dimension or self._is_lost(embedder)):
                # The embedder is unusable: another model now has this name, or its vectors do not exist any more.
                self._remove(embedder)
                embedder = None
            if embedder is None or embedder.state == EmbedderState.OLD:
                for other in Embedder.objects.filter(state=EmbedderState.BUILDING):
                    self._remove(other)
            if embedder is None:
                embedder = Embedder.objects.create(**self._configured, dimension=dimension)
                VectorTable.of(embedder).drop()
            elif embedder.state == EmbedderState.OLD:
                Embedder.objects.filter(pk=embedder.pk).update(state=EmbedderState.BUILDING)
            # An existing table may lack an index that newer versions of LCM create.
            VectorTable.of(embedder).create()
            # Failed conversations are tried again.
            embedder.conversations.filter(state=WorkState.FAILED).update(state=WorkState.QUEUED, attempts=0)
            VectorTable.of(embedder).try_again()
            execute(PROGRESS["queue_conversations"], {"embedder_id": embedder.pk})
        wake_workers()
        return self.status()

    def drop(self, *, embedder_id: int) -> SemanticStatus:
        """Remove an embedder with all of its vectors; fails if it does not exist."""
        with transaction.atomic():
            embedder = Embedder.objects.select_for_update().filter(pk=embedder_id).first()
            if embedder is None:
                raise NotFound(f"There is no embedder {embedder_id}; `lcm embed status` lists them.")
            self._remove(embedder)
        return self.status()

    def status(self) -> SemanticStatus:
        """Report whether semantic search is available, and the progress of embedders."""
        embedders = tuple(self._record(each) for each in Embedder.objects.order_by("embedder_id"))
        current = next((each for each in embedders if each.state is EmbedderState.CURRENT), None)
        is_ready = self.policy.is_configured and current is not None and current.index is not IndexState.LOST
        return SemanticStatus(
            is_configured=self.policy.is_configured,
            missing_settings=self.policy.missing,
            pgvector=pgvector_version(),
            is_ready=is_ready,
            note=" ".join(filter(None, (self._note(embedders, current), self._note_of_key()))),
            embedders=embedders,
        )

    def at_work(self) -> QuerySet[Embedder]:
        """The embedders that embed new messages: the current and the configured one.

        The current embedder is left out while its server rejects the calls of LCM.
        """
        if not self.policy.is_configured:
            return Embedder.objects.none()
        is_next = Q(state=EmbedderState.BUILDING, **self._configured)
        current = Embedder.current()
        is_searched = Q(pk=current.pk) if current is not None and not self._lacks_key(current) else Q(pk__in=())
        return Embedder.objects.filter(is_searched | is_next)

    def _lacks_key(self, embedder: Embedder) -> bool:
        """Whether an embedder that is no longer configured has its calls rejected."""
        return embedder.url != self.policy.embedder_url and guard_of(embedder, self.models).is_denied()

    @property
    def _configured(self) -> dict[str, str]:
        return {
            "url": self.policy.embedder_url,
            "model": self.policy.passage_model,
            "question_model": self.policy.question_model,
        }

    def switch_if_complete(self) -> None:
        """If the embedder that is being built is complete, make it the current one.

        Builds its index first. Does nothing while another process builds the index, because an unfinished index cannot
        be distinguished from an interrupted one.
        """
        with pglock.advisory("lcm.embedding.index", timeout=0) as is_mine:
            if is_mine:
                self._switch_if_complete()

    def _switch_if_complete(self) -> None:
        building = self.at_work().filter(state=EmbedderState.BUILDING).first()
        if building is None or not rows(PROGRESS["is_complete"], {"embedder_id": building.pk})[0][0]:
            return
        table = VectorTable.of(building)
        if table.state()[0] is not IndexState.BUILT:
            table.build_index()
        with transaction.atomic():
            if not Embedder.objects.select_for_update().filter(pk=building.pk, state=EmbedderState.BUILDING).exists():
                return
            Embedder.objects.filter(state=EmbedderState.CURRENT).update(state=EmbedderState.OLD)
            Embedder.objects.filter(pk=building.pk).update(state=EmbedderState.CURRENT, switched_at=Now())
        logger.info("embedder_switched", embedder_id=building.pk, model=building.model)

    def _dimension(self) -> int:
        """Find the dimension of the configured model by embedding a text."""
        configured = Embedder(**self._configured)
        clients = [make(configured, self.policy, self.models) for make in (passages_client, question_client)]
        try:
            # These calls bypass the circuit breaker, which may still be open.
            found = {len(replace(client, before_call=_permitted).embed([PROBE])[0]) for client in clients}
        except ModelFailed as failed:
            raise Unavailable(f"The embedder gives no vector: {failed}.", code="embedder_unavailable") from failed
        if len(found) > 1:
            raise Invalid(
                "LCM_EMBEDDER_MODEL: the two models return vectors of different lengths; name two that match."
            )
        [dimension] = found
        if dimension > WIDEST:
            raise Invalid(
                f"Vectors of this model have {dimension:,} dimensions; an index takes at most {WIDEST:,}.",
                code="wrong_dimension",
            )
        return dimension

    def _is_lost(self, embedder: Embedder) -> bool:
        return VectorTable.of(embedder).state()[0] is IndexState.LOST

    def _remove(self, embedder: Embedder) -> None:
        VectorTable.of(embedder).drop()
        embedder.delete()

    def _record(self, embedder: Embedder) -> EmbedderRecord:
        [progress] = rows(PROGRESS["progress"], {"embedder_id": embedder.pk})
        messages, embedded, passages, refused, waiting, failed, last_error = progress
        index, size = VectorTable.of(embedder).state()
        is_configured = all(getattr(embedder, name) == value for name, value in self._configured.items())
        return EmbedderRecord(
            embedder_id=embedder.pk,
            model=embedder.model,
            host=urlsplit(embedder.url).hostname or "",
            dimension=embedder.dimension,
            state=EmbedderState(embedder.state),
            created_at=embedder.created_at,
            switched_at=embedder.switched_at,
            messages=messages,
            messages_embedded=embedded,
            passages=passages,
            passages_refused=refused,
            refusals=tuple(
                f"{each}: {each.reason}" for each in embedder.refused_passages.order_by("-pk")[:MOST_REFUSALS]
            ),
            conversations_waiting=waiting,
            conversations_failed=failed,
            index=index,
            size_bytes=size,
            last_error=last_error,
            is_configured=is_configured,
        )

    def _note(self, embedders: tuple[EmbedderRecord, ...], current: EmbedderRecord | None) -> str:
        """A sentence on what the site administrator must do next, or on the progress."""
        if not self.policy.is_configured:
            return f"Search is by words alone: {self.policy.what_is_missing}."
        building = next(
            (each for each in embedders if each.is_configured and each.state is EmbedderState.BUILDING), None
        )
        if not any(each.is_configured and each.state is not EmbedderState.OLD for each in embedders):
            return "The configured model has no index: run `lcm embed setup`."
        if current is not None and current.index is IndexState.LOST:
            return "The vectors are gone, or pgvector is: run `lcm embed setup`. Search goes on by words."
        if building is not None:
            share = 100 * building.messages_embedded // max(1, building.messages)
            until = "search goes on with the model before it" if current is not None else "search is by words"
            return f"{share} % of all messages are embedded by {building.model}; until it is done, {until}."
        return "Search by meaning is ready."

    def _note_of_key(self) -> str:
        current = Embedder.current() if self.policy.is_configured else None
        if current is None or not self._lacks_key(current):
            return ""
        return (
            f"The server of the model in use, {current.model}, rejects LCM's calls; LCM_EMBEDDER_KEY is for another "
            "server. New messages are found by words alone until the configured model takes over."
        )


def _permitted() -> None:
    """Permit every call, in place of a circuit breaker."""


def guard_of(embedder: Embedder, models: ModelsPolicy) -> Guard:
    """The circuit breaker and the spending limit of one embedder."""
    key = endpoint_key(url=embedder.url, model=embedder.model, question_model=embedder.question_model)
    return Guard(EMBEDDER, models, row_key=key)


def passages_client(embedder: Embedder, policy: EmbedderPolicy, models: ModelsPolicy) -> EmbeddingClient:
    """Build a client for stored passages, with its share of the spending limit."""
    share = SHARE_OF_BACKGROUND
    spending = replace(
        models,
        spend_max_calls=int(models.spend_max_calls * share),
        spend_max_tokens=int(models.spend_max_tokens * share),
    )
    return _client(embedder, embedder.model, policy, spending, PASSAGES_SECONDS)


def question_client(embedder: Embedder, policy: EmbedderPolicy, models: ModelsPolicy) -> EmbeddingClient:
    """Build a client for questions, with the timeout of a search."""
    return _client(embedder, embedder.question_model, policy, models, QUESTION_SECONDS)


def _client(
    embedder: Embedder, model: str, policy: EmbedderPolicy, models: ModelsPolicy, seconds: float
) -> EmbeddingClient:
    guard = guard_of(embedder, models)
    return EmbeddingClient(
        url=embedder.url,
        model=model,
        dimension=embedder.dimension,
        key=policy.key_for(embedder.url),
        timeout_seconds=seconds,
        before_call=guard.before_call,
        after_call=guard.after_call,
    )
