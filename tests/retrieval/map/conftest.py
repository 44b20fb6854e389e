from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compaction.llm.configuration import ModelsPolicy
from retrieval.map.map_operator import MapOperator
from retrieval.map.map_worker import MapWorker
from tests.compaction.vendor import Vendor
from tests.retrieval.map.labels import labelling


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    with Vendor(labelling) as serving:
        yield serving


@pytest.fixture
def policy(vendor: Vendor, settings: Any) -> Callable[..., ModelsPolicy]:
    """The settings of models with this vendor, for the services and for a worker."""

    def build(**changed: Any) -> ModelsPolicy:
        values = {"chat_url": vendor.url, "chat_model": "labeller", "spend_max_calls": 0, **changed}
        settings.LCM = {**settings.LCM, **values}
        return ModelsPolicy.from_settings()

    return build


@pytest.fixture
def operator(policy: Callable[..., ModelsPolicy]) -> MapOperator:
    policy()
    return MapOperator.from_settings()


@pytest.fixture
def work(policy: Callable[..., ModelsPolicy], committed_db: None) -> Callable[..., None]:
    """A worker that takes a slice, in threads with connections of their own."""

    def run(**changed: Any) -> None:
        policy(**{"map_lease_seconds": 5.0, "map_calls": 4, **changed})
        MapWorker.from_settings().work()

    return run
