"""What runs by the clock is listed from where the tasks are registered, and what waits from the queues."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from django_huey import get_queue
from huey import crontab

from compaction.tasks import compact_conversation
from lcmsite.periodic_tasks import periodic_tasks, read_schedule
from lcmsite.queues import QUEUES
from tests.lcmsite.callers import lcm
from tests.lcmsite.operating import a_queue

pytestmark = pytest.mark.django_db
PAGE = "/w/default/clock/"


def test_every_task_that_any_worker_runs_by_the_clock_is_listed():
    listed = periodic_tasks()
    midnight = datetime(2026, 1, 1)
    day = [midnight + timedelta(minutes=minute) for minute in range(24 * 60)]
    run = {task.name for name in QUEUES for moment in day for task in get_queue(name).read_periodic(moment)}

    assert {each.name for each in listed} == run and "forget_ended_sessions" in run
    assert all(each.does.endswith(".") for each in listed)


def test_a_schedule_is_shown_in_words_with_its_next_run(monkeypatch):
    whens = {
        "every minute": crontab(),
        "every 5 minutes": crontab(minute="*/5"),
        "every hour, at minute 17": crontab(minute="17"),
        "every day at 02:30": crontab(minute="30", hour="2"),
        "4 times a day": crontab(minute="0", hour="*/6"),
        "48 times a day": crontab(minute="0,7"),
        "not every day": crontab(minute="0", hour="3", day_of_week="0"),
    }
    queue = a_queue("maintenance", redis_url="")
    for number, when in enumerate(whens.values()):

        def a_new_task() -> None:
            """Do something new.

            And more about it.
            """

        a_new_task.__name__, a_new_task.__module__ = f"new_task_{number}", "lcmsite.tasks"
        monkeypatch.setattr(f"lcmsite.tasks.new_task_{number}", queue.periodic_task(when)(a_new_task), raising=False)

    shown = {each.schedule: each for each in periodic_tasks() if each.name.startswith("new_task_")}

    assert shown.keys() == whens.keys()
    assert {(each.room, each.does) for each in shown.values()} == {("lcmsite", "Do something new.")}
    for words, when in whens.items():
        next_at = shown[words].next_at
        assert next_at is not None and next_at > timezone.now()
        assert when(next_at.astimezone(UTC).replace(tzinfo=None))


def test_tasks_that_wait_are_counted_and_named(superuser):
    queue = get_queue("compaction")
    queue.storage.flush_all()
    compact_conversation(job_id=7)
    queue.add_schedule(compact_conversation.s(job_id=8))
    try:
        [found] = [each for each in read_schedule().queues if each.name == "compaction"]
        shown = lcm("clock", "--json").json
        page = superuser.get(PAGE).content.decode()
    finally:
        queue.storage.flush_all()

    assert (found.waiting, found.scheduled, found.tasks) == (1, 1, ("compact_conversation",) * 2)
    assert shown["queues"][0]["waiting"] == 1
    assert "1 task waiting, 1 for later." in page and "compact_conversation" in page


def test_the_clock_is_shown_on_the_terminal_and_on_its_page(superuser):
    told, page = lcm("clock").out, superuser.get(PAGE).content.decode()

    for each in periodic_tasks():
        assert each.does in told and each.does in page and each.schedule in told


def test_redis_that_does_not_respond_is_named(superuser, settings, tmp_path):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, redis_url=f"unix://{tmp_path}/no.sock")

    refused, page = lcm("clock"), superuser.get(PAGE)

    assert (refused.exit_code, "no.sock does not respond." in refused.err) == (6, True)
    assert (page.status_code, "does not respond" in page.content.decode()) == (503, True)
