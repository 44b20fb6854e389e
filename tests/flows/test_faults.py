"""Everything goes wrong at once: the model fails, workers are killed, the database goes down. Nothing is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from django.db import close_old_connections
from django.db.models import Count

from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.models import CompactionJob, CompactionRun
from compaction.summarizing.prompts import prompt_hash
from compaction.types import JobState, Outcome
from conversations.models import Summary, SummaryMessage, SummaryParent
from conversations.types import Level
from tests.compaction.vendor import Vendor
from tests.factories import a_conversation
from tests.flows.own_server import OwnServer, own_server, patiently  # noqa: F401
from tests.flows.processes import PROJECT, environment, wait_until
from tests.flows.storms import STORMY, Storm, Unreliable, Workers
from tests.flows.walk import assert_clean
from tests.flows.writers import Writers, assert_nothing_is_lost
from tests.round_trip import assert_ledgers_survive

SECONDS_BETWEEN_SWEEPS = 5.0

SHOWER = Storm(seconds=12, writers=3, conversations=3, workers=2, kills=2, pause=0.3)
TEMPEST = Storm(seconds=90, writers=8, conversations=4, workers=3, kills=10, pause=0.5)
THUNDER = replace(SHOWER, blow=signal.SIGKILL)
STORMS = [
    pytest.param(SHOWER, id="shower", marks=pytest.mark.thorough),
    pytest.param(THUNDER, id="thunder", marks=pytest.mark.slow),
    pytest.param(TEMPEST, id="tempest", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("storm", STORMS)
@pytest.mark.timeout(1200)
def test_nothing_is_lost_doubled_or_forgotten_when_model_database_and_workers_fail(
    own_server: OwnServer,  # noqa: F811
    settings: Any,
    storm: Storm,
):
    model = Unreliable()
    with Vendor(model) as vendor:
        own = {**STORMY, "chat_url": vendor.url, "data_dir": own_server.data_dir}
        settings.LCM = {**STORMY, "chat_url": vendor.url}
        conversation_ids = [a_conversation().conversation_id for _ in range(storm.conversations)]

        with Workers(storm.workers, **own) as workers:
            with Writers(conversation_ids, storm.writers, has_keys=True, pause=storm.pause) as writers:
                wait_until(Summary.objects.exists, seconds=60, what="a worker has made a summary")
                blow(storm, workers=workers, server=own_server)
            wait_until(is_everything_done, seconds=600, what="all jobs are done")

        assert not writers.failures
        for conversation_id in conversation_ids:
            assert_nothing_is_lost(conversation_id, writers.written_to(conversation_id))
        assert_every_source_has_one_summary()
        assert_levels_are_true(model)
        assert set(CompactionJob.objects.values_list("state", flat=True)) == {JobState.DONE}

        for conversation_id in conversation_ids:
            CompactionEngine.from_settings().compact(conversation_id=conversation_id)
        assert not CompactionRun.objects.filter(outcome=Outcome.RUNNING).exists()
        assert_clean()
        checked = subprocess.run(
            [sys.executable, "manage.py", "lcm", "check", "--json"],
            cwd=PROJECT,
            env=environment(**own),
            stdout=subprocess.PIPE,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout
        assert json.loads(checked.stdout)["messages_checked"] == len(writers.written)
        assert_ledgers_survive()


def blow(storm: Storm, *, workers: Workers, server: OwnServer) -> None:
    """Kill workers at work, spread over the time, bring the database down in the middle of it, sweep now and then."""
    begun = swept = time.monotonic()
    kills = [storm.seconds * (n + 0.5) / storm.kills for n in range(storm.kills)]
    restarts = [storm.seconds / 2]
    while (passed := time.monotonic() - begun) < storm.seconds or kills or restarts:
        assert passed < storm.seconds + 300, "no worker is at work"
        close_old_connections()
        if kills and passed >= kills[0] and patiently(workers.is_one_at_work):
            kills.pop(0)
            workers.kill_one()
            patiently(assert_clean)
        if restarts and passed >= restarts[0]:
            restarts.pop(0)
            server.restart(storm.blow)
            patiently(assert_clean)
        # A wake-up that a killed worker took is lost, as in production: the sweep finds its job.
        if time.monotonic() - swept >= SECONDS_BETWEEN_SWEEPS:
            patiently(CompactionWorker.from_settings().sweep)
            swept = time.monotonic()
        time.sleep(0.1)


def is_everything_done() -> bool:
    """Whether no job is left, after the sweep that finds what was forgotten."""
    time.sleep(1.0)
    CompactionWorker.from_settings().sweep()
    return not CompactionJob.objects.filter(state__in=[JobState.QUEUED, JobState.LEASED]).exists()


def assert_every_source_has_one_summary() -> None:
    """But for those that were superseded, which stay beside the ones that took their place."""
    for links, source in ((SummaryMessage.objects, "message_id"), (SummaryParent.objects, "source_id")):
        standing = links.filter(summary__superseded_by=None).values(source)
        assert not standing.annotate(summaries=Count("summary_id")).filter(summaries__gt=1).exists()


def assert_levels_are_true(model: Unreliable) -> None:
    """What is said to be a model's text at a level is what it wrote when asked at that level; the rest says why not."""
    for summary in Summary.objects.all():
        if summary.level == Level.DETERMINISTIC:
            assert summary.content not in model.written
            assert (summary.model, summary.is_degraded) == ("telegraphic", True)
            assert summary.quality["lack"] in ("unavailable", "rejected")
            assert summary.quality["failures"]
        else:
            level = Level(summary.level)
            assert level in model.written[summary.content]
            assert summary.model == "served-model"
            assert summary.prompt_hash == prompt_hash(depth=summary.depth, level=level)
            assert summary.is_degraded == ("degraded_sources" in summary.quality)
