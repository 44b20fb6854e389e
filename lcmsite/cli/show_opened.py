"""What was opened, and by whose leave, for people: pages of an expansion, ranges, what derives from what, answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from compaction.rendering import ERASED
from conversations.humanize import counted
from lcmsite.cli.terminal_layout import body, cell, heading, safe, span
from retrieval.delegation.types import GrantRecord, GrantState, QueryAnswer
from retrieval.describing.lineage import Impact
from retrieval.describing.ranges import RangeDescription, RangeExpansion
from retrieval.types import ExpandedItem, MessageSpan, SummaryOutline


def items(expanded: Sequence[ExpandedItem], gap: MessageSpan | None, console: Console) -> None:
    """The items of a page, with the gap before the last of them, if there is one."""
    for place, item in enumerate(expanded, start=1):
        if gap is not None and place == len(expanded):
            console.print(f"... {span(gap)} ...\n", style="dim")
        what = item.role or f"{item.summary_kind} summary"
        heading(console, f"{'  ' * (item.level - 1)}[{span(item)}] {what}", item.id, counted(item.tokens, "token"))
        body(console, ERASED if item.erased else item.content or item.parts_json)


def expansion_of_range(expanded: RangeExpansion, console: Console) -> None:
    items(expanded.items, expanded.gap, console)
    console.print(f"{counted(expanded.tokens, 'token')}.", style="dim")
    if expanded.cursor:
        # A cursor belongs to its question.
        options = [f"--depth {expanded.depth}"] if expanded.depth != 1 else []
        if expanded.only_messages:
            options.append("--only-messages")
        elif expanded.include_messages:
            options.append("--include-messages")
        asked = f"{expanded.conversation_id} {expanded.from_seq} {expanded.to_seq}"
        again = " ".join(["lcm expand-range", asked, *options, f"--cursor={expanded.cursor}"])
        console.print(f"There is more: {again}", soft_wrap=True)
    elif expanded.note:
        console.print(safe(expanded.note), style="dim")


def description_of_range(described: RangeDescription, console: Console) -> None:
    for node in described.nodes:
        of_it = f"{counted(node.messages_in_range, 'message')} of the range"
        heading(console, f"[{span(node.summary)}] {node.summary.kind} summary", node.summary.summary_id, of_it)
        if node.content is not None:
            body(console, node.content)
    _outlines(described.manifest, console)
    raw = ", ".join(map(span, described.raw_messages)) or "none"
    console.print(
        f"{counted(described.message_count, 'message')}, {counted(described.message_tokens, 'token')}; in the context "
        f"{described.context_tokens:,}, still raw: {raw}.",
        style="dim",
    )
    if described.note:
        console.print(safe(described.note), style="dim")


def impact(found: Impact, console: Console) -> None:
    _outlines(found.items, console)
    for level in found.levels:
        console.print(
            f"{level.distance:>4} away: {counted(level.count, 'summary', 'summaries')}, "
            f"{counted(level.tokens, 'token')}, {level.active:,} in the context"
        )
    itself = "It is in the context itself" if found.active else "It is not in the context itself"
    derived = counted(found.count, "summary derives", "summaries derive")
    console.print(f"{derived} from {safe(found.id)}. {itself}.", style="dim")


def answer(found: QueryAnswer, console: Console) -> None:
    if found.answer is not None:
        body(console, found.answer)
    for excerpt in found.excerpts:
        who = excerpt.role or f"{excerpt.kind}"
        heading(console, f"[{span(excerpt)}] {who}", excerpt.id, counted(excerpt.tokens, "token"))
        body(console, excerpt.text)
    if found.answer is not None and found.cited_ids:
        console.print(f"It rests on {', '.join(found.cited_ids)}.", soft_wrap=True)
    if found.note:
        console.print(safe(found.note), style="dim", soft_wrap=True)
    for call in found.hint.calls:
        console.print(f"Opening it directly would do: {call}", style="dim", soft_wrap=True)
    if found.grant is not None:
        grant(found.grant, console)


def grant(record: GrantRecord, console: Console) -> None:
    until = f" until {cell(record.expires_at)}" if record.state is GrantState.ACTIVE else ""
    heading(
        console, record.grant_id, f"{record.state}{until}", f"{record.tokens_used:,} of {record.token_cap:,} tokens"
    )
    refused = ", ".join(f"{code} {count:,}" for code, count in sorted(record.refusals.items()))
    console.print(Text(safe(f"  {cell(record.question)}")), soft_wrap=True)
    console.print(
        safe(
            f"  {counted(record.depth, 'level')} below {', '.join(record.item_ids)}; "
            f"{counted(record.reads, 'read')}, refused: {refused or 'nothing'}"
        ),
        style="dim",
        soft_wrap=True,
    )


def _outlines(outlines: Iterable[SummaryOutline], console: Console) -> None:
    for outline in outlines:
        superseded = f"superseded by {outline.superseded_by}" if outline.superseded_by else ""
        shown = "in the context" if outline.active else superseded
        opening = f"opens for {counted(outline.opening_tokens, 'token')}"
        heading(console, f"[{span(outline)}] depth {outline.depth}", outline.summary_id, opening, shown)
