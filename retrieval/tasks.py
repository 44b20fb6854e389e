"""Background tasks that run the workers of map runs and of embedding."""

from __future__ import annotations

from django_huey import db_periodic_task, db_task
from huey import crontab

from retrieval.map.map_worker import MapWorker
from retrieval.semantic.embedding_worker import EmbeddingWorker


@db_task(queue="maintenance")
def work_on_map_runs() -> None:
    MapWorker.from_settings().work()


@db_periodic_task(crontab(minute="*"), queue="maintenance")
def sweep_map_runs() -> None:
    """Wake a worker for map runs, and resume runs whose model is available again."""
    MapWorker.from_settings().sweep()


@db_task(queue="maintenance")
def embed_messages() -> None:
    EmbeddingWorker.from_settings().work()


@db_periodic_task(crontab(minute="*"), queue="maintenance")
def sweep_embeddings() -> None:
    """Embed new messages, if an embedder is set up."""
    EmbeddingWorker.from_settings().sweep()
