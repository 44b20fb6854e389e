"""Map runs while the vendor is unreliable, workers are killed and the database is started anew."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter

import pytest

from conversations.files.large_files import LargeFileService
from retrieval.map.map_operator import MapOperator
from retrieval.map.map_worker import MapWorker
from retrieval.map.models import MapEvent, MapItem
from tests.compaction.vendor import Vendor
from tests.factories import a_conversation
from tests.flows.own_server import OwnServer, own_server, patiently  # noqa: F401
from tests.flows.processes import wait_until
from tests.flows.storms import Workers
from tests.maps import lines_of
from tests.retrieval.map.labels import PROMPT, SCHEMA, Unreliable, an_item, expected, last_message

# A silent worker's items are soon another's, and a slice is over soon.
TIGHT = {
    "chat_model": "labeller",
    "spend_max_calls": 0,
    "breaker_failures": 100_000,
    "map_slice_seconds": 5.0,
    "map_lease_seconds": 5.0,
    "map_calls": 8,
}


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_every_item_is_completed_once_whatever_is_killed(own_server: OwnServer, settings, tmp_path):  # noqa: F811
    count, kills = 2000, 10
    unreliable = Unreliable(hang_every=97)
    with Vendor(unreliable) as vendor:
        policy = {**TIGHT, "chat_url": vendor.url}
        settings.LCM = {**settings.LCM, **policy}
        own = {**policy, "data_dir": own_server.data_dir}
        operator = MapOperator.from_settings()
        conversation_id = a_conversation("hello").conversation_id
        content = "".join(json.dumps(an_item(number)) + "\n" for number in range(count)).encode()
        file = LargeFileService.from_settings().store(
            conversation_id=conversation_id, content=content, file_name="lines.jsonl"
        )
        run = operator.submit(
            prompt=PROMPT, output_schema=SCHEMA, input_file_id=file.file_id, conversation_id=conversation_id,
            concurrency=16, max_attempts=10, timeout_s=2,
        )  # fmt: skip

        def ended() -> int:
            return patiently(lambda: MapItem.objects.filter(state__in=["done", "failed"]).count())

        with Workers(2, "maintenance", **own) as workers:
            for kill in range(kills):
                goal = (kill + 1) * count // (kills + 2)
                wait_until(lambda goal=goal: ended() >= goal, seconds=600, what=f"{goal} items are done")
                workers.kill_one()
                if kill == kills // 2:
                    own_server.restart(signal.SIGINT)
                patiently(MapWorker.from_settings().sweep)

            def is_over() -> bool:
                time.sleep(1)
                patiently(MapWorker.from_settings().sweep)
                return patiently(lambda: operator.get_run(run_id=run.run_id).state) == "completed"

            wait_until(is_over, seconds=600, what="the run is over")

        run = operator.get_run(run_id=run.run_id)
        assert (run.done, run.failed, run.failures_file_id) == (count, 0, None)
        assert lines_of(run.output_file_id) == [expected(number) for number in range(count)]
        events = Counter(
            MapEvent.objects.filter(run_id=run.run_id, event="completed").values_list("position", flat=True)
        )
        assert events == Counter(range(1, count + 1))
        assert MapEvent.objects.filter(run_id=run.run_id, event="finished").count() == 1
        assert f"{count:,} of {count:,} items done" in last_message(conversation_id)
        assert min(unreliable.calls.values()) >= 1 and sum(unreliable.calls.values()) > count * 5 / 4
