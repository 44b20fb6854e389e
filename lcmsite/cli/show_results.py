"""Show results on a terminal: a record as lines, several as a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from rich.console import Console

from compaction.llm.types import EndpointRecord
from compaction.types import Coverage, FlushResult, PlanOutline, PlanRecord
from conversations.humanize import counted
from conversations.types import MessageRecord
from lcmsite.answers.answer_text import span
from lcmsite.answers.found_texts import reader_text
from lcmsite.catalogue.capabilities import CapabilitySummary
from lcmsite.catalogue.json_text import as_ascii_json
from lcmsite.catalogue.paging import Page
from lcmsite.cli import show_reading, show_trust
from lcmsite.cli.terminal_layout import UNLIMITED_WIDTH, Screen, cell, show_one
from lcmsite.effective_settings import EffectiveSettings, Source
from lcmsite.hosts.doctoring import HostHealth
from lcmsite.periodic_tasks import Schedule
from lcmsite.types import IssuedKey
from retrieval.delegation.types import GrantRecord
from retrieval.history.types import TimelineEntry
from retrieval.types import MessageSpan

_SHOWN_ONE_BY_ONE = MessageRecord | EndpointRecord | PlanOutline | GrantRecord | TimelineEntry | HostHealth
# Imported for the renderers that they register.
RENDERERS = (show_reading, show_trust)


class _Console(Console):
    """A console whose closed pipe is no failure: `lcm grep ... | head` ends with 0."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def show(result: Any, stream: TextIO, *, workspace: Callable[[], str] = str) -> None:
    """Write the result, fitted to the terminal's width; bytes are written unchanged."""
    if isinstance(result, bytes):
        stream.flush()
        stream.buffer.write(result)
        return
    # In a file or a pipe, a row of a table is one line, however long.
    width = None if stream.isatty() else UNLIMITED_WIDTH
    screen = Screen(_Console(file=stream, width=width, highlight=False, emoji=False, markup=False), workspace)
    if isinstance(result, list | tuple):
        _show_many(result, screen)
    else:
        show_one(result, screen)


def _show_many(results: Sequence[Any], screen: Screen) -> None:
    if not results:
        screen.line("Nothing.")
    elif isinstance(results[0], _SHOWN_ONE_BY_ONE):
        for before, each in zip([None, *results], results, strict=False):
            # Only a page of a list is in the order of seqs.
            if isinstance(results, Page):
                _show_gap(before, each, screen)
            show_one(each, screen)
    else:
        screen.table(results)


def _show_gap(before: Any, after: Any, screen: Screen) -> None:
    """Show the range of seqs missing between two listed messages, if there is one."""
    if isinstance(before, MessageRecord) and isinstance(after, MessageRecord) and after.seq > before.seq + 1:
        missing = MessageSpan(before.seq + 1, after.seq - 1)
        screen.line(f"[{span(missing)}] missing: not in the database; see `lcm check`", style="bold red")
        screen.line()


@show_one.register
def _(message: MessageRecord, screen: Screen) -> None:
    author = f" {message.author}" if message.author else ""
    screen.heading(f"[{message.seq}] {message.role}{author}", f"msg_{message.message_id}", cell(message.created_at))
    screen.body(reader_text(message))


@show_one.register
def _(health: HostHealth, screen: Screen) -> None:
    state = {True: "connected", False: "connected, but cannot reach LCM", None: "not connected"}[health.alive]
    screen.heading(health.host, health.version or ("found" if health.found else "not found"), state)
    # What failed since the last import is part of the advice.
    problem = "" if health.last_problem.split(" ", 2)[-1] in health.advice else health.last_problem
    pending = counted(health.pending, "entry", "entries") if health.pending else ""
    facts = {"last event": health.last_event, "last import": health.last_import, "last problem": problem}
    for name, value in (facts | {"in the spool": pending}).items():
        if value:
            screen.line(f"  {name}: {value}")
    for each in health.advice.splitlines():
        screen.line(f"  to do: {each}")
    screen.line()


@show_one.register
def _(issued: IssuedKey, screen: Screen) -> None:
    screen.line(issued.key)
    screen.note("Keep it: it cannot be shown again.")
    screen.fields(issued.record)


@show_one.register
def _(model: EndpointRecord, screen: Screen) -> None:
    screen.heading(model.name, model.model or "no model", model.host or "no address")
    until = f" until {cell(model.open_until)}" if model.open_until else ""
    state = f"{model.state}{until}" if model.is_configured else "not configured"
    failed = f", last {model.last_failure} at {cell(model.last_failure_at)}" if model.last_failure else ""
    ends = f", until {cell(model.window_ends_at)}" if model.window_ends_at else ""
    cost = "" if model.cost is None else f", cost {model.cost:,.2f}"
    temperature = "; called without a temperature, which it refuses" if model.refuses_temperature else ""
    for line in (
        f"{state}; {counted(model.consecutive_failures, 'failure')} in a row{failed}{temperature}",
        f"in this window: {_spent_of_limit(model.window_calls, model.window_calls_limit)} calls, "
        f"{_spent_of_limit(model.window_tokens, model.window_tokens_limit)} tokens{ends}",
        f"in all: {counted(model.calls, 'call')} ({model.failures:,} failed), {model.tokens_in:,} tokens read, "
        f"{model.tokens_out:,} written{cost}",
    ):
        screen.line(f"  {line}")


def _spent_of_limit(spent: int, limit: int | None) -> str:
    return f"{spent:,}" if limit is None else f"{spent:,} of {limit:,}"


@show_one.register
def _(in_force: EffectiveSettings, screen: Screen) -> None:
    for group in in_force.groups:
        screen.line(group.title, style="bold")
        for setting in group.settings:
            value = ("set" if setting.is_set else "") if setting.is_secret else cell(setting.value)
            origin = "" if setting.source is Source.DEFAULT else f"  ({setting.source})"
            screen.line(f"  {setting.name:30} {value}{origin}".rstrip())


@show_one.register
def _(schedule: Schedule, screen: Screen) -> None:
    for task in schedule.tasks:
        screen.line((f"{task.schedule:26}", "bold"), f"  {task.does}")
        following = f", next at {cell(task.next_at)}" if task.next_at else ""
        screen.note(f"{'':26}  {task.name} of {task.room}{following}")
    for queue in schedule.queues:
        screen.line(f"queue {queue.name}: {queue.waiting:,} waiting, {queue.scheduled:,} for later")
        for name, count in Counter(queue.tasks).items():
            screen.note(f"  {name}: {count:,}")


@show_one.register
def _(plan: PlanOutline, screen: Screen) -> None:
    screen.heading("plan", plan.plan_id, f"conversation {plan.conversation_id}", cell(plan.created_at))
    screen.line(
        f"  {counted(plan.step_count, 'step')}: {counted(plan.tokens_before, 'token')} in "
        f"{counted(plan.items_before, 'item')} to {counted(plan.tokens_expected, 'token')} in "
        f"{counted(plan.items_expected, 'item')}"
    )
    calls = f"{counted(plan.calls, 'call')}, {plan.tokens_in:,} tokens in, {plan.tokens_out:,} out"
    by = f"{_summarizer(plan)}: {calls}, {_cost(plan)}" if plan.model else plan.summarizer
    screen.note(f"  by {by}")
    for other in plan.otherwise if plan.step_count else ():
        by = f"{_summarizer(other)}: {_cost(other)}" if other.model else other.summarizer
        screen.note(f"  or, if that does not answer, by {by}")
    if plan.executed_at is not None:
        screen.note(f"  executed by {plan.run_id}, {cell(plan.executed_at)}")


def _summarizer(chosen: Any) -> str:
    return f"{chosen.summarizer} ({chosen.model})"


def _cost(chosen: Any) -> str:
    return "cost not known" if chosen.cost is None else f"cost {chosen.cost:,.4f}"


@show_one.register
def _(plan: PlanRecord, screen: Screen) -> None:
    show_one.dispatch(PlanOutline)(plan, screen)
    for step in plan.steps:
        sources = ", ".join(map(span, step.ranges))
        earlier = f" (of steps {', '.join(map(str, step.from_steps))})" if step.from_steps else ""
        screen.line(
            f"{step.number:>4}  depth {step.depth}  {step.kind} summary of [{sources}]{earlier}: "
            f"{counted(step.source_tokens, 'token')} to at most {step.expected_tokens:,}"
        )


@show_one.register
def _(flushed: FlushResult, screen: Screen) -> None:
    boundary = flushed.boundary
    screen.heading(f"boundary after {boundary.last_seq}", boundary.host_reference, cell(boundary.recorded_at))
    if not flushed.created:
        screen.note("It was already recorded.")
    for done in (flushed.compaction, flushed.job):
        if done is not None:
            screen.fields(done)


@show_one.register
def _(coverage: Coverage, screen: Screen) -> None:
    for gap in coverage.gaps:
        screen.line((f"{gap.kind} ", "bold red"), f"[{span(gap)}]")
    if coverage.gaps_left_out:
        screen.line(f"and {counted(coverage.gaps_left_out, 'more gap')}", style="dim")
    for key in coverage.missing_keys:
        screen.line(("no message has the key ", "bold red"), key)
    screen.note(
        f"{counted(coverage.stored, 'message')} up to {coverage.last_seq}: {coverage.summarized:,} summarized, "
        f"{coverage.raw:,} not summarized, {coverage.unreachable:,} unreachable; {coverage.missing:,} missing. "
        f"{'Everything can be recovered.' if coverage.is_complete else 'Not everything can be recovered.'}"
    )


@show_one.register
def _(capabilities: CapabilitySummary, screen: Screen) -> None:
    # Programs read it, so it is JSON with or without --json.
    screen.body(json.dumps(json.loads(as_ascii_json(capabilities)), indent=2))
