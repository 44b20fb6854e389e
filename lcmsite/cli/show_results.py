"""Results for people: a record as lines, several as a table, and what is meant to be read as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from compaction.rendering import ERASED
from compaction.types import Coverage, EndpointRecord, FlushResult, PlanOutline, PlanRecord
from conversations.humanize import counted
from conversations.types import MessageRecord
from integrity.types import IntegrityReport, RepairPlanRecord, ReportPage
from lcmsite.cli import show_opened, show_trust
from lcmsite.cli.terminal_layout import blanked, body, cell, heading, lines, safe, span, table
from lcmsite.effective_settings import EffectiveSettings, Source
from lcmsite.types import IssuedKey
from retrieval.assembly.types import AssembledContext, RecallSection, ReceiptDifference
from retrieval.delegation.types import GrantRecord, QueryAnswer
from retrieval.describing.lineage import Impact
from retrieval.describing.ranges import RangeDescription, RangeExpansion
from retrieval.types import ExpandResult, GrepResult, Lineage, MessageSpan

# Of a table that goes into a file or a pipe, where nobody minds long lines.
WIDTH_OFF_TERMINAL = 240


def show(result: Any, stream: TextIO) -> None:
    """Write the result, as wide as the terminal is; bytes as they are."""
    if isinstance(result, bytes):
        stream.flush()
        stream.buffer.write(result)
        return
    width = None if stream.isatty() else WIDTH_OFF_TERMINAL
    console = Console(file=stream, width=width, highlight=False, emoji=False, markup=False)
    if isinstance(result, list | tuple):
        _show_many(result, console)
    else:
        show_one(result, console)


def _show_many(results: Sequence[Any], console: Console) -> None:
    if not results:
        console.print("Nothing.")
    elif isinstance(results[0], MessageRecord | EndpointRecord | PlanOutline | GrantRecord):
        for before, each in zip([None, *results], results, strict=False):
            _show_gap(before, each, console)
            show_one(each, console)
    else:
        console.print(table(results))


def _show_gap(before: Any, after: Any, console: Console) -> None:
    """Between two messages whose seqs do not follow each other: the ones that are gone."""
    if isinstance(before, MessageRecord) and isinstance(after, MessageRecord) and after.seq > before.seq + 1:
        missing = MessageSpan(before.seq + 1, after.seq - 1)
        console.print(f"[{span(missing)}] missing: not in the database; see `lcm check`", style="bold red")
        console.print()


@singledispatch
def show_one(result: Any, console: Console) -> None:
    """The fields of a record, one a line; several records in one of them as a table below."""
    lines(result, console)


@show_one.register
def _(message: MessageRecord, console: Console) -> None:
    author = f" {message.author}" if message.author else ""
    heading(console, f"[{message.seq}] {message.role}{author}", f"msg_{message.message_id}", cell(message.created_at))
    body(console, message.content if message.erased_by_id is None else ERASED)


@show_one.register
def _(issued: IssuedKey, console: Console) -> None:
    console.print(issued.key, soft_wrap=True)
    console.print("Keep it: it cannot be shown again.", style="dim")
    lines(issued.record, console)


@show_one.register
def _(model: EndpointRecord, console: Console) -> None:
    heading(console, model.name, model.model or "no model", model.host or "no address")
    until = f" until {cell(model.open_until)}" if model.open_until else ""
    state = f"{model.state}{until}" if model.is_configured else "not configured"
    failed = f", last {model.last_failure} at {cell(model.last_failure_at)}" if model.last_failure else ""
    ends = f", until {cell(model.window_ends_at)}" if model.window_ends_at else ""
    cost = "" if model.cost is None else f", cost {model.cost:,.2f}"
    for line in (
        f"{state}; {counted(model.consecutive_failures, 'failure')} in a row{failed}",
        f"in this window: {_of(model.window_calls, model.window_calls_limit)} calls, "
        f"{_of(model.window_tokens, model.window_tokens_limit)} tokens{ends}",
        f"in all: {counted(model.calls, 'call')} ({model.failures:,} failed), {model.tokens_in:,} tokens read, "
        f"{model.tokens_out:,} written{cost}",
    ):
        console.print(f"  {line}", soft_wrap=True)


@show_one.register
def _(in_force: EffectiveSettings, console: Console) -> None:
    for group in in_force.groups:
        console.print(group.title, style="bold")
        for setting in group.settings:
            value = ("set" if setting.is_set else "") if setting.is_secret else cell(setting.value)
            origin = "" if setting.source is Source.DEFAULT else f"  ({setting.source})"
            console.print(f"  {setting.name:30} {safe(value)}{origin}".rstrip(), soft_wrap=True, markup=False)


def _of(spent: int, limit: int | None) -> str:
    return f"{spent:,}" if limit is None else f"{spent:,} of {limit:,}"


@show_one.register
def _(context: AssembledContext, console: Console) -> None:
    for item in context.items:
        heading(console, f"[{span(item)}] {item.role}", item.id, counted(item.tokens, "token"))
        body(console, item.text)
    for message in (*context.system, *context.messages):
        body(console, json.dumps(message, ensure_ascii=False))
    for repair in context.repairs:
        console.print(safe(f"{repair.kind}: {repair.what} ({', '.join(repair.item_ids)})"), style="dim")
    if context.receipt_id:
        console.print(f"The receipt is {context.receipt_id}.", style="dim")
    left_out = context.left_out
    over = ", over budget" if context.over_budget else ""
    console.print(
        f"{counted(context.total_tokens, 'token')} of {context.budget:,}{over}; left out: "
        f"{counted(left_out.messages, 'message')} and {counted(left_out.summaries, 'summary', 'summaries')}, "
        f"{counted(left_out.tokens, 'token')}.",
        style="dim",
    )


@show_one.register
def _(section: RecallSection, console: Console) -> None:
    if section.text:
        body(console, section.text)
    console.print(f"{counted(section.tokens, 'token')} of {section.limit:,}.", style="dim")


@show_one.register
def _(changed: ReceiptDifference, console: Console) -> None:
    for line in changed.came_in:
        heading(console, f"+ [{span(line)}] {line.reason}", line.id or "", counted(line.tokens, "token"))
    for gone in changed.went_out:
        instead = f"now in {gone.replaced_by}" if gone.replaced_by else ""
        tokens = counted(gone.line.tokens, "token")
        heading(console, f"- [{span(gone.line)}]", gone.line.id or "", tokens, instead)
    for each in changed.changed_cost:
        heading(console, f"~ [{span(each)}]", each.id, f"{each.tokens_before:,} to {each.tokens_after:,} tokens")
    console.print(
        f"{changed.tokens_before:,} to {counted(changed.tokens_after, 'token')}; "
        f"{counted(changed.unchanged, 'item')} unchanged.",
        style="dim",
    )


@show_one.register
def _(found: GrepResult, console: Console) -> None:
    for match in found.matches:
        who = match.role or match.file_name or f"{match.kind} of"
        heading(console, f"[{span(match)}] {who}", match.id, f"conversation {match.conversation_id}")
        # A character for a character, so that the highlights stay where they are.
        snippet = Text(blanked(match.snippet.text))
        for start, end in match.snippet.highlights:
            snippet.stylize("bold", start, end)
        console.print(snippet, soft_wrap=True)
        console.print()
    relaxed = ", any of the words" if found.relaxed else ""
    note = f" {found.note}" if found.note else ""
    console.print(safe(f"{counted(len(found.matches), 'match', 'matches')}{relaxed}.{note}"), style="dim")
    if found.cursor:
        # A cursor belongs to its question.
        console.print(f"There is more: the same again with --cursor={found.cursor}", soft_wrap=True, style="dim")


@show_one.register
def _(expanded: ExpandResult, console: Console) -> None:
    show_opened.items(expanded.items, expanded.gap, console)
    console.print(f"{counted(expanded.tokens, 'token')}.", style="dim")
    if expanded.cursor:
        # A cursor belongs to its question.
        depth = f" --depth {expanded.depth}" if expanded.depth != 1 else ""
        messages = " --include-messages" if expanded.include_messages else ""
        again = f"lcm expand {expanded.summary_id}{depth}{messages} --cursor={expanded.cursor}"
        console.print(f"There is more: {again}", soft_wrap=True)


show_one.register(RangeExpansion, show_opened.expansion_of_range)
show_one.register(RangeDescription, show_opened.description_of_range)
show_one.register(Impact, show_opened.impact)
show_one.register(QueryAnswer, show_opened.answer)
show_one.register(GrantRecord, show_opened.grant)


@show_one.register
def _(lineage: Lineage, console: Console) -> None:
    sources: dict[str, list[str]] = {}
    for edge in lineage.edges:
        sources.setdefault(edge.summary_id, []).append(edge.source_id)
    nodes = {node.summary_id: node for node in lineage.nodes}
    below = [(node.summary_id, 0) for node in reversed(lineage.nodes) if node.active]
    while below:
        summary_id, level = below.pop()
        node = nodes[summary_id]
        tokens = counted(node.token_count, "token")
        heading(console, f"{'  ' * level}[{span(node)}] {node.kind}", node.summary_id, tokens)
        below += [(source, level + 1) for source in reversed(sources.get(summary_id, []))]
    raw = ", ".join(map(span, lineage.raw_messages)) or "none"
    summaries, messages = counted(len(nodes), "summary", "summaries"), counted(lineage.message_count, "message")
    console.print(f"{summaries} of {messages}; still raw: {raw}.", style="dim")
    for boundary in lineage.boundaries:
        when = cell(boundary.recorded_at)
        console.print(safe(f"The host cut behind {boundary.last_seq}: {boundary.host_reference}, {when}."), style="dim")


@show_one.register
def _(plan: PlanOutline, console: Console) -> None:
    heading(console, "plan", plan.plan_id, f"conversation {plan.conversation_id}", cell(plan.created_at))
    console.print(
        f"  {counted(plan.step_count, 'step')}: {counted(plan.tokens_before, 'token')} in "
        f"{counted(plan.items_before, 'item')} to {counted(plan.tokens_expected, 'token')} in "
        f"{counted(plan.items_expected, 'item')}",
        soft_wrap=True,
    )
    takes = f"{counted(plan.calls, 'call')}, {plan.tokens_in:,} tokens in, {plan.tokens_out:,} out"
    cost = "cost not known" if plan.cost is None else f"cost {plan.cost:,.4f}"
    by = f"{plan.summarizer} ({plan.model}): {takes}, {cost}" if plan.model else plan.summarizer
    console.print(safe(f"  by {by}"), style="dim", soft_wrap=True)
    for other in plan.otherwise if plan.step_count else ():
        cost = "cost not known" if other.cost is None else f"cost {other.cost:,.4f}"
        by = f"{other.summarizer} ({other.model}): {cost}" if other.model else other.summarizer
        console.print(safe(f"  or, where that does not answer, by {by}"), style="dim", soft_wrap=True)
    if plan.executed_at is not None:
        console.print(f"  carried out by {plan.run_id}, {cell(plan.executed_at)}", style="dim", soft_wrap=True)


@show_one.register
def _(plan: PlanRecord, console: Console) -> None:
    show_one.dispatch(PlanOutline)(plan, console)
    for step in plan.steps:
        taken = ", ".join(map(span, step.ranges))
        made = f" (of steps {', '.join(map(str, step.from_steps))})" if step.from_steps else ""
        console.print(
            f"{step.number:>4}  depth {step.depth}  {step.kind} summary of [{taken}]{made}: "
            f"{counted(step.source_tokens, 'token')} to at most {step.expected_tokens:,}",
            soft_wrap=True,
        )


@show_one.register
def _(flushed: FlushResult, console: Console) -> None:
    boundary = flushed.boundary
    heading(console, f"boundary behind {boundary.last_seq}", boundary.host_reference, cell(boundary.recorded_at))
    if not flushed.created:
        console.print("It was recorded before.", style="dim")
    for done in (flushed.compaction, flushed.job):
        if done is not None:
            lines(done, console)


@show_one.register
def _(coverage: Coverage, console: Console) -> None:
    for gap in coverage.gaps:
        console.print(Text.assemble((f"{gap.kind} ", "bold red"), f"[{span(gap)}]"))
    if coverage.gaps_left_out:
        console.print(f"and {counted(coverage.gaps_left_out, 'more gap')}", style="dim")
    for key in coverage.missing_keys:
        console.print(Text.assemble(("no message has the key ", "bold red"), safe(key)), soft_wrap=True)
    console.print(
        f"{counted(coverage.stored, 'message')} up to {coverage.last_seq}: {coverage.summarized:,} summarized, "
        f"{coverage.raw:,} raw, {coverage.unreachable:,} unreachable; {coverage.missing:,} missing. "
        f"{'Everything can be had.' if coverage.is_complete else 'Not everything can be had.'}",
        style="dim",
    )


show_one.register(IntegrityReport, show_trust.report)
show_one.register(ReportPage, show_trust.report_page)
show_one.register(RepairPlanRecord, show_trust.repair_plan)
