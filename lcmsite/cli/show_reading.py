"""Show the results of searches and reads on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.text import Text

from compaction.history.types import HistoryKind
from compaction.rendering import ERASED
from conversations.humanize import counted
from lcmsite.answers.answer_text import span
from lcmsite.answers.found_texts import reader_text, summary_of_context, summary_of_search, withheld
from lcmsite.cli.terminal_layout import Screen, blanked, cell, show_one
from retrieval.assembly.about import About
from retrieval.assembly.types import AssembledContext, RecallSection, ReceiptDifference
from retrieval.delegation.types import GrantRecord, GrantState, QueryAnswer
from retrieval.describing.lineage import Direction, Impact
from retrieval.describing.ranges import RangeDescription, RangeExpansion
from retrieval.history.types import HistoryItem, SessionAgo, SessionExpansion, SessionMatches, TimelineEntry
from retrieval.types import (
    Description,
    ExpandedItem,
    ExpandResult,
    GrepResult,
    Lineage,
    MessageSpan,
    Snippet,
    SummaryOutline,
)


@show_one.register
def _(context: AssembledContext, screen: Screen) -> None:
    for item in context.items:
        screen.heading(f"[{span(item)}] {item.role}", item.id, counted(item.tokens, "token"))
        screen.body(item.text)
    for message in (*context.system, *context.messages):
        screen.body(json.dumps(message, ensure_ascii=False))
    for repair in context.repairs:
        screen.note(f"{repair.kind}: {repair.what} ({', '.join(repair.item_ids)})")
    if context.receipt_id:
        screen.note(f"The receipt is {context.receipt_id}.")
    screen.note(summary_of_context(context))


@show_one.register
def _(section: RecallSection, screen: Screen) -> None:
    if section.text:
        screen.body(section.text)
    screen.note(f"{counted(section.tokens, 'token')} of {section.limit:,}.")


@show_one.register
def _(changed: ReceiptDifference, screen: Screen) -> None:
    for line in changed.came_in:
        screen.heading(f"+ [{span(line)}] {line.reason}", line.id or "", counted(line.tokens, "token"))
    for gone in changed.went_out:
        instead = f"now in {gone.replaced_by}" if gone.replaced_by else ""
        tokens = counted(gone.line.tokens, "token")
        screen.heading(f"- [{span(gone.line)}]", gone.line.id or "", tokens, instead)
    for each in changed.changed_cost:
        screen.heading(f"~ [{span(each)}]", each.id, f"{each.tokens_before:,} to {each.tokens_after:,} tokens")
    screen.note(
        f"{changed.tokens_before:,} to {counted(changed.tokens_after, 'token')}; "
        f"{counted(changed.unchanged, 'item')} unchanged."
    )


@show_one.register
def _(found: GrepResult, screen: Screen) -> None:
    for match in found.matches:
        source = match.role or match.file_name or f"{match.kind} of"
        screen.heading(
            f"[{span(match)}] {source}", match.id, f"{cell(match.session_id, longest=None)} ({match.conversation_id})"
        )
        _show_snippet(match.snippet, withheld(match), screen)
    screen.note(summary_of_search(found))
    if found.cursor:
        # Not a complete command: a cursor is only valid with the same query.
        screen.note(f"There is more: the same again with --cursor={found.cursor}")


def _show_snippet(snippet: Snippet, placeholder: str | None, screen: Screen) -> None:
    """Show the snippet of a match with its highlights, or the placeholder if given."""
    # Replaced character by character, so that the highlights keep their places.
    text = Text(placeholder or blanked(snippet.text))
    for start, end in snippet.highlights:
        text.stylize("bold", start, end)
    screen.console.print(text, soft_wrap=True)
    screen.line()


@show_one.register
def _(found: About, screen: Screen) -> None:
    for item in found.items:
        source = item.role or "summary"
        session = f"{cell(item.session_id, longest=None)} ({item.conversation_id})"
        screen.heading(f"[{span(item)}] {source}", item.id, session, cell(item.created_at))
        screen.body(withheld(item) or item.text)
    more = "; there is more: raise --max-tokens" if found.more else ""
    note = f" {found.note}" if found.note else ""
    screen.note(f"{counted(len(found.items), 'item')}, {counted(found.tokens, 'token')}{more}.{note}")


@show_one.register
def _(expanded: ExpandResult, screen: Screen) -> None:
    _show_items(expanded.items, expanded.gap, expanded.tokens, screen)
    if expanded.cursor:
        _show_more("expand", expanded.summary_id, expanded, screen)
    elif expanded.note:
        screen.note(expanded.note)


@show_one.register
def _(expanded: RangeExpansion, screen: Screen) -> None:
    _show_items(expanded.items, expanded.gap, expanded.tokens, screen)
    if expanded.cursor:
        what = f"{expanded.conversation_id} {expanded.from_seq} {expanded.to_seq}"
        _show_more("expand-range", what, expanded, screen, only_messages=expanded.only_messages)
    elif expanded.note:
        screen.note(expanded.note)


def _show_more(
    command: str,
    what: str,
    page: ExpandResult | RangeExpansion | SessionExpansion,
    screen: Screen,
    *,
    only_messages: bool = False,
) -> None:
    """Show the command for the next page; its cursor is valid with the same options."""
    options = [f"--depth {page.depth}"] if page.depth != 1 else []
    if only_messages:
        options.append("--only-messages")
    elif page.include_messages:
        options.append("--include-messages")
    words = " ".join([command, what, *options, f"--cursor={page.cursor}"])
    screen.line(f"There is more: {screen.command(words)}")


def _show_items(items: Sequence[ExpandedItem], gap: MessageSpan | None, tokens: int, screen: Screen) -> None:
    """Show the items of a page; a gap comes before the last of them."""
    for place, item in enumerate(items, start=1):
        if gap is not None and place == len(items):
            screen.line(f"... {span(gap)} ...\n", style="dim")
        what = item.role or f"{item.summary_kind} summary"
        screen.heading(f"{'  ' * (item.level - 1)}[{span(item)}] {what}", item.id, counted(item.tokens, "token"))
        screen.body(reader_text(item))
    screen.note(f"{counted(tokens, 'token')}.")


@show_one.register
def _(described: Description, screen: Screen) -> None:
    if described.content is None:
        screen.fields(described)
        return
    # The text comes last, with the texts of the parts.
    screen.fields(replace(described, content=None, parts=(), parts_json=None, cursor=None))
    screen.line()
    screen.body(reader_text(described))
    if described.cursor:
        words = f"describe {described.id} --cursor={described.cursor}"
        screen.line(f"There is more: {screen.command(words)}")


@show_one.register
def _(described: RangeDescription, screen: Screen) -> None:
    for node in described.nodes:
        share = f"{counted(node.messages_in_range, 'message')} of the range"
        screen.heading(f"[{span(node.summary)}] {node.summary.kind} summary", node.summary.summary_id, share)
        if text := withheld(node) or node.content:
            screen.body(text)
    _show_outlines(described.manifest, screen)
    screen.note(
        f"{counted(described.message_count, 'message')}, {counted(described.message_tokens, 'token')}; in the context "
        f"{described.context_tokens:,}, not summarized: {_spans(described.raw_messages)}."
    )
    if described.note:
        screen.note(described.note)


@show_one.register
def _(found: Impact, screen: Screen) -> None:
    for level in found.levels:
        things, tokens = counted(level.count, "item"), counted(level.tokens, "token")
        screen.heading(
            f"{level.distance} away{f': {level.label}' if level.label else ''}",
            f"{things}, {tokens}, {level.active:,} in the context",
        )
        for item in level.items:
            place = f"[{span(item)}]" if item.first_seq is not None else cell(item.file_name or "")
            sure = f"confidence {item.confidence}" if item.confidence is not None else ""
            screen.line(f"  {item.id}  {item.kind.replace('_', ' ')}  {place}  {sure}".rstrip())
    itself = "It is in the context itself" if found.active else "It is not in the context itself"
    of = "depend on" if found.direction is Direction.UPSTREAM else "are sources of"
    screen.note(f"{counted(found.count, 'item')} {of} {found.id}. {itself}.")


@show_one.register
def _(found: QueryAnswer, screen: Screen) -> None:
    if found.answer is not None:
        screen.body(found.answer)
    for excerpt in found.excerpts:
        source = excerpt.role or f"{excerpt.kind}"
        screen.heading(f"[{span(excerpt)}] {source}", excerpt.id, counted(excerpt.tokens, "token"))
        screen.body(excerpt.text)
    if found.answer is not None and found.cited_ids:
        screen.line(f"It relies on {', '.join(found.cited_ids)}.")
    if found.note:
        screen.note(found.note)
    for call in found.hint.calls:
        screen.note(f"To read it directly: {call}")
    if found.grant is not None:
        show_one(found.grant, screen)


@show_one.register
def _(grant: GrantRecord, screen: Screen) -> None:
    until = f" until {cell(grant.expires_at)}" if grant.state is GrantState.ACTIVE else ""
    screen.heading(grant.grant_id, f"{grant.state}{until}", f"{grant.tokens_used:,} of {grant.token_cap:,} tokens")
    refused = ", ".join(f"{code} {count:,}" for code, count in sorted(grant.refusals.items()))
    screen.line(f"  {cell(grant.question)}")
    screen.note(
        f"  {counted(grant.depth, 'level')} below {', '.join(grant.item_ids)}; "
        f"{counted(grant.reads, 'read')}, refused: {refused or 'nothing'}"
    )


@show_one.register
def _(lineage: Lineage, screen: Screen) -> None:
    sources: dict[str, list[str]] = {}
    for edge in lineage.edges:
        sources.setdefault(edge.summary_id, []).append(edge.source_id)
    nodes = {node.summary_id: node for node in lineage.nodes}
    below = [(node.summary_id, 0) for node in reversed(lineage.nodes) if node.active]
    while below:
        summary_id, level = below.pop()
        node = nodes[summary_id]
        tokens = counted(node.token_count, "token")
        screen.heading(f"{'  ' * level}[{span(node)}] {node.kind}", node.summary_id, tokens)
        below += [(source, level + 1) for source in reversed(sources.get(summary_id, []))]
    summaries, messages = counted(len(nodes), "summary"), counted(lineage.message_count, "message")
    screen.note(f"{summaries} of {messages}; not summarized: {_spans(lineage.raw_messages)}.")
    for boundary in lineage.boundaries:
        when = cell(boundary.recorded_at)
        screen.note(f"The host cut its context after {boundary.last_seq}: {boundary.host_reference}, {when}.")


def _spans(ranges: Iterable[MessageSpan]) -> str:
    return ", ".join(map(span, ranges)) or "none"


def _show_outlines(outlines: Iterable[SummaryOutline], screen: Screen) -> None:
    for outline in outlines:
        superseded = f"superseded by {outline.superseded_by}" if outline.superseded_by else ""
        state = "in the context" if outline.active else superseded
        cost = f"{counted(outline.opening_tokens, 'token')} to open"
        screen.heading(f"[{span(outline)}] depth {outline.depth}", outline.summary_id, cost, state)


@show_one.register
def _(entry: TimelineEntry, screen: Screen) -> None:
    named = entry.title or entry.session_id or ""
    screen.heading(f"{entry.kind} {named}".rstrip(), entry.id or "no summary yet", *_figures(entry))
    if entry.quarantined:
        screen.body("[quarantined: made from content that no model may see]")
    elif entry.erased:
        screen.body(ERASED)
    elif entry.content is not None:
        screen.body(entry.content)


def _figures(entry: TimelineEntry) -> Iterable[str]:
    """The details of an entry: its project, extent, time and place."""
    if entry.project is not None:
        yield entry.project
    if entry.kind is HistoryKind.SESSION:
        behind = f" ({entry.behind:,} newer)" if entry.behind else ""
        yield f"conversation {entry.conversation_id}"
        yield counted(entry.message_count or 0, "message") + behind
    else:
        yield counted(entry.sessions or 0, "session")
    yield f"{cell(entry.earliest_at)} to {cell(entry.latest_at)}"
    if entry.parent_link is not None:
        yield f"{entry.parent_link} of conversation {entry.parent_id}"
    if entry.part_of is not None:
        yield f"in {entry.part_of}"
    if entry.is_degraded:
        yield "degraded"


@show_one.register
def _(found: SessionAgo, screen: Screen) -> None:
    ago = counted(found.sessions_ago, "session")
    screen.note(f"{ago} before conversation {found.conversation_id} in {cell(found.project)}:")
    show_one(found.session, screen)
    for call in found.calls:
        screen.note(f"To read more of it: {call}")


@show_one.register
def _(expanded: SessionExpansion, screen: Screen) -> None:
    for item in expanded.items:
        title = f"{'  ' * (item.level - 1)}{_source(item)}"
        screen.heading(title, item.id, counted(item.tokens, "token"))
        screen.body(reader_text(item))
    screen.note(f"{counted(expanded.tokens, 'token')}.")
    if expanded.superseded_by:
        screen.note(f"A newer summary replaced it: {expanded.superseded_by}.")
    if expanded.cursor:
        _show_more("expand-session", expanded.summary_id, expanded, screen)


def _source(item: HistoryItem) -> str:
    if item.history_kind is not None:
        of = f" of conversation {item.conversation_id}" if item.conversation_id is not None else ""
        return f"{item.history_kind}{of}"
    return f"[{item.conversation_id}: {span(item)}] {item.role or f'{item.summary_kind} summary'}"


@show_one.register
def _(found: SessionMatches, screen: Screen) -> None:
    for match in found.matches:
        session = f"conversation {match.conversation_id}" if match.conversation_id is not None else ""
        screen.heading(str(match.kind), match.id, cell(match.project), session, cell(match.latest_at))
        _show_snippet(match.snippet, None, screen)
    relaxed = ", any of the words" if found.relaxed else ""
    screen.note(f"{counted(len(found.matches), 'match', 'matches')}{relaxed}.")
    if found.next_cursor:
        screen.note(f"There is more: the same again with --cursor={found.next_cursor}")
