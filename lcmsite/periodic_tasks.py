"""List the periodic tasks and the contents of the task queues.

Periodic tasks are found where they are registered: in the `tasks` modules of the installed apps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import pairwise

from django.apps import apps
from django.utils import timezone
from django.utils.module_loading import module_has_submodule
from django_huey import get_queue
from huey import api as huey

from lcmsite.connections import redis_problem
from lcmsite.queues import QUEUES

MINUTE = timedelta(minutes=1)
MINUTES_OF_DAY = 24 * 60
# How many days ahead the next run is searched.
MOST_DAYS = 31
# Maximum number of tasks listed for a queue.
MOST_LISTED_TASKS = 50


@dataclass(frozen=True)
class PeriodicTask:
    """A periodic task (in UTC), with its next run if that is within a month."""

    name: str
    room: str
    schedule: str
    next_at: datetime | None
    does: str


@dataclass(frozen=True)
class TaskQueue:
    """The tasks of a queue: `waiting` for a worker, or `scheduled` for later.

    `tasks` names the first of them. A task only tells a worker to process pending rows; if it is lost, a periodic task
    does the same.
    """

    name: str
    waiting: int
    scheduled: int
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Schedule:
    """The periodic tasks, and the contents of the queues."""

    tasks: tuple[PeriodicTask, ...]
    queues: tuple[TaskQueue, ...]


def read_schedule() -> Schedule:
    """Read the periodic tasks and both queues; Unavailable if Redis does not respond."""
    if (problem := redis_problem()) is not None:
        raise problem
    return Schedule(tasks=periodic_tasks(), queues=tuple(map(_queue, QUEUES)))


def periodic_tasks() -> tuple[PeriodicTask, ...]:
    """Every periodic task, most frequent first."""
    found = sorted(_registered(), key=lambda each: (-len(_due_minutes(each)), each.func.__module__, each.func.__name__))
    return tuple(
        PeriodicTask(
            name=each.func.__name__,
            room=each.func.__module__.partition(".")[0],
            schedule=_schedule_in_words(_due_minutes(each)),
            next_at=_next_run(each),
            does=(each.func.__doc__ or each.func.__name__.replace("_", " ")).partition("\n")[0],
        )
        for each in found
    )


def _registered() -> Iterator[huey.TaskWrapper]:
    for app in apps.get_app_configs():
        if app.module is not None and module_has_submodule(app.module, "tasks"):
            module = import_module(f"{app.name}.tasks")
            for each in vars(module).values():
                is_its_own = isinstance(each, huey.TaskWrapper) and each.func.__module__ == module.__name__
                if is_its_own and issubclass(each.task_class, huey.PeriodicTask):
                    yield each


def _due_minutes(task: huey.TaskWrapper) -> list[int]:
    """The minutes of the day at which the task runs, from 0 to 1439."""
    runs_at, midnight = task.task_class().validate_datetime, datetime(2024, 1, 1)
    return [minute for minute in range(MINUTES_OF_DAY) if runs_at(midnight + minute * MINUTE)]


def _schedule_in_words(minutes: list[int]) -> str:
    """Describe a schedule in words, such as "every day at 03:30"."""
    gaps = {later - earlier for earlier, later in pairwise([*minutes, *(m + MINUTES_OF_DAY for m in minutes[:1])])}
    if len(gaps) != 1:
        return f"{len(minutes)} times a day" if minutes else "not every day"
    [gap] = gaps
    if gap == 1:
        return "every minute"
    if gap < 60:
        return f"every {gap} minutes"
    if gap == 60:
        return f"every hour, at minute {minutes[0]}"
    if gap == MINUTES_OF_DAY:
        return f"every day at {minutes[0] // 60:02}:{minutes[0] % 60:02}"
    return f"{len(minutes)} times a day"


def _next_run(task: huey.TaskWrapper) -> datetime | None:
    runs_at, now = task.task_class().validate_datetime, timezone.now().astimezone(UTC)
    first = now.replace(second=0, microsecond=0, tzinfo=None) + MINUTE
    ahead = (first + minute * MINUTE for minute in range(MOST_DAYS * MINUTES_OF_DAY))
    return next((moment.replace(tzinfo=UTC) for moment in ahead if runs_at(moment)), None)


def _queue(name: str) -> TaskQueue:
    queue = get_queue(name)
    waiting, scheduled = queue.pending(MOST_LISTED_TASKS), queue.scheduled(MOST_LISTED_TASKS)
    return TaskQueue(
        name=name,
        waiting=len(waiting) if len(waiting) < MOST_LISTED_TASKS else queue.pending_count(),
        scheduled=len(scheduled) if len(scheduled) < MOST_LISTED_TASKS else queue.scheduled_count(),
        tasks=tuple(each.name for each in [*waiting, *scheduled][:MOST_LISTED_TASKS]),
    )
