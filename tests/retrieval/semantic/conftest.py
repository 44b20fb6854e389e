"""An embedder that is set up, and what searches by meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from compaction.models import ModelEndpoint
from conversations.scope import Scope
from integrity.retention.erasure import Erasures
from retrieval.engine import RetrievalEngine
from retrieval.semantic.embedders import Embedders
from retrieval.semantic.embedding_worker import EmbeddingWorker
from retrieval.semantic.models import Embedder
from retrieval.semantic.types import SemanticStatus
from retrieval.semantic.vector_table import VectorTable, pgvector_version
from retrieval.types import GrepResult
from tests.factories import a_workspace
from tests.integrity.erasing import erased
from tests.retrieval.semantic.embedder_server import EmbedderServer

TEXTS = ("My car was fixed", "The garden needs rain", "A kitten sleeps", "A vehicle came by")


def erase(conversation_id: int, seq: int) -> None:
    """Erase a message for good."""
    erased(Erasures.from_settings(Scope(a_workspace().pk)), conversation_id, from_seq=seq, to_seq=seq)


@dataclass
class Site:
    """A site with an embedder in its settings."""

    server: EmbedderServer
    settings: Any

    def configure(self, *, url: str | None = None, model: str = "small", **more: Any) -> None:
        """Name an embedder in the settings."""
        self.settings.LCM = {"embedder_url": self.server.url if url is None else url, "embedder_model": model, **more}

    def set_up(self) -> SemanticStatus:
        """Set the configured embedder up, and let it embed everything."""
        Embedders.from_settings().set_up()
        return self.embed()

    def embed(self) -> SemanticStatus:
        """One sweep of the worker, as the clock starts it every minute."""
        EmbeddingWorker.from_settings().sweep()
        return self.status

    @property
    def status(self) -> SemanticStatus:
        return Embedders.from_settings().status()

    def grep(self, query: str, mode: str = "semantic", **asked: Any) -> GrepResult:
        return RetrievalEngine.from_settings(Scope(a_workspace().pk)).grep(query=query, mode=mode, **asked)

    def found(self, query: str, mode: str = "semantic", **asked: Any) -> list[int]:
        """The seqs of messages that are found."""
        return [match.first_seq for match in self.grep(query, mode, **asked).matches]

    def vectors(self, embedder_id: int | None = None) -> list[int]:
        """The messages that have vectors."""
        from conversations.sql import rows

        number = embedder_id or Embedder.objects.latest("pk").pk
        found = rows(f"SELECT DISTINCT message_id FROM embedding_vectors_{number} ORDER BY 1")
        return [message_id for (message_id,) in found]

    def wake_all(self) -> None:
        """As if the embedder had been left alone for long enough."""
        from retrieval.semantic.models import EmbeddedConversation

        EmbeddedConversation.objects.update(run_after="2020-01-01T00:00Z", leased_until="2020-01-01T00:00Z")
        ModelEndpoint.objects.update(open_until=None, consecutive_failures=0)


@pytest.fixture
def site(committed_db: None, settings: Any) -> Iterator[Site]:
    if pgvector_version() is None:
        pytest.skip("this PostgreSQL has no pgvector")
    with EmbedderServer() as server:
        site = Site(server, settings)
        site.configure()
        yield site
    for embedder in Embedder.objects.all():
        VectorTable.of(embedder).drop()
