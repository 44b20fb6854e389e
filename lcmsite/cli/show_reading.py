"""Show what grep, describe, expand and assemble return."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from compaction.rendering import ERASED
from conversations.humanize import counted
from lcmsite.cli.terminal_layout import blanked, body, cell, heading, note, safe, show_one, span
from retrieval.assembly.types import AssembledContext, RecallSection, ReceiptDifference
from retrieval.delegation.types import GrantRecord, GrantState, QueryAnswer
from retrieval.describing.lineage import Impact
from retrieval.describing.ranges import RangeDescription, RangeExpansion
from retrieval.types import ExpandedItem, ExpandResult, GrepResult, Lineage, MessageSpan, SummaryOutline


@show_one.register
def _(context: AssembledContext, console: Console) -> None:
    for item in context.items:
        heading(console, f"[{span(item)}] {item.role}", item.id, counted(item.tokens, "token"))
        body(console, item.text)
    for message in (*context.system, *context.messages):
        body(console, json.dumps(message, ensure_ascii=False))
    for repair in context.repairs:
        note(console, f"{repair.kind}: {repair.what} ({', '.join(repair.item_ids)})")
    if context.receipt_id:
        note(console, f"The receipt is {context.receipt_id}.")
    left_out = context.left_out
    over = ", over budget" if context.over_budget else ""
    note(
        console,
        f"{counted(context.total_tokens, 'token')} of {context.budget:,}{over}; left out: "
        f"{counted(left_out.messages, 'message')} and {counted(left_out.summaries, 'summary', 'summaries')}, "
        f"{counted(left_out.tokens, 'token')}.",
    )


@show_one.register
def _(section: RecallSection, console: Console) -> None:
    if section.text:
        body(console, section.text)
    note(console, f"{counted(section.tokens, 'token')} of {section.limit:,}.")


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
    note(
        console,
        f"{changed.tokens_before:,} to {counted(changed.tokens_after, 'token')}; "
        f"{counted(changed.unchanged, 'item')} unchanged.",
    )


@show_one.register
def _(found: GrepResult, console: Console) -> None:
    for match in found.matches:
        source = match.role or match.file_name or f"{match.kind} of"
        heading(console, f"[{span(match)}] {source}", match.id, f"conversation {match.conversation_id}")
        # Replaced character by character, so that the highlights keep their places.
        snippet = Text(blanked(match.snippet.text))
        for start, end in match.snippet.highlights:
            snippet.stylize("bold", start, end)
        console.print(snippet, soft_wrap=True)
        console.print()
    relaxed = ", any of the words" if found.relaxed else ""
    more = f" {found.note}" if found.note else ""
    note(console, f"{counted(len(found.matches), 'match', 'matches')}{relaxed}.{more}")
    if found.cursor:
        # A cursor belongs to its query.
        note(console, f"There is more: the same again with --cursor={found.cursor}")


@show_one.register
def _(expanded: ExpandResult, console: Console) -> None:
    _show_items(expanded.items, expanded.gap, expanded.tokens, console)
    if expanded.cursor:
        options = _expand_options(expanded.depth, expanded.include_messages, only_messages=False)
        again = " ".join(["lcm expand", expanded.summary_id, *options, f"--cursor={expanded.cursor}"])
        console.print(f"There is more: {again}", soft_wrap=True)


@show_one.register
def _(expanded: RangeExpansion, console: Console) -> None:
    _show_items(expanded.items, expanded.gap, expanded.tokens, console)
    if expanded.cursor:
        options = _expand_options(expanded.depth, expanded.include_messages, only_messages=expanded.only_messages)
        what = f"{expanded.conversation_id} {expanded.from_seq} {expanded.to_seq}"
        again = " ".join(["lcm expand-range", what, *options, f"--cursor={expanded.cursor}"])
        console.print(f"There is more: {again}", soft_wrap=True)
    elif expanded.note:
        note(console, expanded.note)


def _expand_options(depth: int, include_messages: bool, *, only_messages: bool) -> list[str]:
    """The options of this request, which its cursor belongs to."""
    options = [f"--depth {depth}"] if depth != 1 else []
    if only_messages:
        return [*options, "--only-messages"]
    return [*options, "--include-messages"] if include_messages else options


def _show_items(items: Sequence[ExpandedItem], gap: MessageSpan | None, tokens: int, console: Console) -> None:
    """Show the items of a page; a gap comes before the last of them."""
    for place, item in enumerate(items, start=1):
        if gap is not None and place == len(items):
            console.print(f"... {span(gap)} ...\n", style="dim")
        what = item.role or f"{item.summary_kind} summary"
        heading(console, f"{'  ' * (item.level - 1)}[{span(item)}] {what}", item.id, counted(item.tokens, "token"))
        body(console, ERASED if item.erased else item.content or item.parts_json)
    note(console, f"{counted(tokens, 'token')}.")


@show_one.register
def _(described: RangeDescription, console: Console) -> None:
    for node in described.nodes:
        share = f"{counted(node.messages_in_range, 'message')} of the range"
        heading(console, f"[{span(node.summary)}] {node.summary.kind} summary", node.summary.summary_id, share)
        if node.content is not None:
            body(console, node.content)
    _show_outlines(described.manifest, console)
    note(
        console,
        f"{counted(described.message_count, 'message')}, {counted(described.message_tokens, 'token')}; in the context "
        f"{described.context_tokens:,}, still raw: {_spans(described.raw_messages)}.",
    )
    if described.note:
        note(console, described.note)


@show_one.register
def _(found: Impact, console: Console) -> None:
    _show_outlines(found.items, console)
    for level in found.levels:
        console.print(
            f"{level.distance:>4} away: {counted(level.count, 'summary', 'summaries')}, "
            f"{counted(level.tokens, 'token')}, {level.active:,} in the context"
        )
    itself = "It is in the context itself" if found.active else "It is not in the context itself"
    derived = counted(found.count, "summary derives", "summaries derive")
    note(console, f"{derived} from {found.id}. {itself}.")


@show_one.register
def _(found: QueryAnswer, console: Console) -> None:
    if found.answer is not None:
        body(console, found.answer)
    for excerpt in found.excerpts:
        source = excerpt.role or f"{excerpt.kind}"
        heading(console, f"[{span(excerpt)}] {source}", excerpt.id, counted(excerpt.tokens, "token"))
        body(console, excerpt.text)
    if found.answer is not None and found.cited_ids:
        console.print(f"It relies on {', '.join(found.cited_ids)}.", soft_wrap=True)
    if found.note:
        note(console, found.note)
    for call in found.hint.calls:
        note(console, f"To read it directly: {call}")
    if found.grant is not None:
        show_one(found.grant, console)


@show_one.register
def _(grant: GrantRecord, console: Console) -> None:
    until = f" until {cell(grant.expires_at)}" if grant.state is GrantState.ACTIVE else ""
    heading(console, grant.grant_id, f"{grant.state}{until}", f"{grant.tokens_used:,} of {grant.token_cap:,} tokens")
    refused = ", ".join(f"{code} {count:,}" for code, count in sorted(grant.refusals.items()))
    console.print(Text(safe(f"  {cell(grant.question)}")), soft_wrap=True)
    note(
        console,
        f"  {counted(grant.depth, 'level')} below {', '.join(grant.item_ids)}; "
        f"{counted(grant.reads, 'read')}, refused: {refused or 'nothing'}",
    )


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
    summaries, messages = counted(len(nodes), "summary", "summaries"), counted(lineage.message_count, "message")
    note(console, f"{summaries} of {messages}; still raw: {_spans(lineage.raw_messages)}.")
    for boundary in lineage.boundaries:
        when = cell(boundary.recorded_at)
        note(console, f"The host cut behind {boundary.last_seq}: {boundary.host_reference}, {when}.")


def _spans(ranges: Iterable[MessageSpan]) -> str:
    return ", ".join(map(span, ranges)) or "none"


def _show_outlines(outlines: Iterable[SummaryOutline], console: Console) -> None:
    for outline in outlines:
        superseded = f"superseded by {outline.superseded_by}" if outline.superseded_by else ""
        state = "in the context" if outline.active else superseded
        cost = f"opens for {counted(outline.opening_tokens, 'token')}"
        heading(console, f"[{span(outline)}] depth {outline.depth}", outline.summary_id, cost, state)
