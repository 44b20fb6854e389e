"""Render the results of searches and reads as text for a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from compaction.rendering import ERASED, QUARANTINED
from compaction.summarizing.extractive.clean_text import one_line
from compaction.summarizing.extractive.summary_form import with_few_names
from conversations.content.flattening import texts_for_readers
from conversations.humanize import counted
from conversations.types import MessageRecord
from lcmsite.answers.answer_text import as_fields, cursor_line, joined, lines, minute, period, span, text_of
from retrieval.assembly.about import About, AboutItem
from retrieval.assembly.types import AssembledContext, RecallSection
from retrieval.describing.ranges import CoveringNode, RangeDescription, RangeExpansion
from retrieval.history.types import HistoryItem, SessionExpansion, TimelineEntry
from retrieval.search.snippets import WIDTH
from retrieval.slices import parts_of
from retrieval.types import (
    Description,
    ExpandedItem,
    ExpandResult,
    GrepResult,
    ItemKind,
    Match,
    MessageSpan,
    Snippet,
    SummaryOutline,
)

# A complete message with fewer tokens is labelled only by its seq: its id would add too many tokens.
SHORT_TOKENS = 200
# Maximum number of outlines rendered; the structured content of the result contains all of them.
MOST_OUTLINES = 8
# Maximum number of names rendered from the list at the end of a condensed summary; its sources list all of them.
MOST_NAMES = 12
# On a page of more than MANY_MATCHES, each snippet is cut to NARROW characters.
MANY_MATCHES, NARROW = 10, 170
# Rendered separately, or of no use to a model.
_LEFT_OUT_OF_DESCRIPTIONS = frozenset({
    "id", "kind", "conversation_id", "created_at", "token_count", "active", "first_seq", "last_seq", "earliest_at",
    "latest_at", "summary_kind", "depth", "level", "confidence", "confidence_reason", "opening_tokens", "source_tokens",
    "message_count", "sources", "source_messages", "manifest", "manifest_complete", "quality", "role", "author",
    "held_by", "content", "tokens", "complete", "content_offset", "content_total", "parts", "parts_json",
    "parts_offset", "parts_total", "cursor", "erased", "is_degraded", "derived", "run_id",
})  # fmt: skip


def withheld(item: Any) -> str | None:
    """The placeholder for a quarantined or erased text; None for any other text."""
    if item.quarantined:
        return QUARANTINED
    is_erased = getattr(item, "erased", False) or getattr(item, "erased_by_id", None) is not None
    return ERASED if is_erased else None


def reader_text(item: MessageRecord | Description | ExpandedItem) -> str:
    """The text of a message for readers, with the texts of its parts; or a summary's."""
    content = item.content or ""
    parts = item.parts if isinstance(item, MessageRecord) else parts_of(item.parts, content)
    shown = "\n".join(texts_for_readers(content, parts))
    # After its content, the slices of a long message are pieces of its parts, as JSON.
    return withheld(item) or shown or getattr(item, "parts_json", None) or ""


@text_of.register
def _(found: GrepResult) -> str:
    conversation_ids = {match.conversation_id for match in found.matches} if found.conversation_id is None else set()
    width = NARROW if len(found.matches) > MANY_MATCHES else WIDTH
    shown = [_match(match, is_placed=bool(conversation_ids), width=width) for match in found.matches]
    return lines((*shown, summary_of_search(found), cursor_line(found.cursor)))


def summary_of_search(found: GrepResult) -> str:
    """The number of matches on a page, and how they were found."""
    relaxed = ", any of the words" if found.relaxed else ""
    note = f" {found.note}" if found.note else ""
    return f"{counted(len(found.matches), 'match', 'matches')}{relaxed}.{note}"


def _match(match: Match, *, is_placed: bool, width: int) -> str:
    source = match.role or match.file_name or f"depth {match.depth}"
    place = f"[{match.conversation_id}: {span(match)}]" if is_placed else f"[{span(match)}]"
    covering = f" in {match.covered_by}" if match.covered_by else ""
    score = f" {match.score:.2f}" if match.score else ""
    text = withheld(match) or one_line(_narrowed(match.snippet, width))
    return f"{match.id} {place} {_speaker(source, match.author)} {minute(match.created_at)}{covering}{score}: {text}"


def _speaker(source: str, author: str | None) -> str:
    """The role and author of a message, or the name of a file, in one line."""
    return one_line(f"{source} {author or ''}")


def _narrowed(snippet: Snippet, width: int) -> str:
    """At most `width` characters of a snippet, centred on its highlights."""
    begin = snippet.highlights[0][0] if snippet.highlights else 0
    end = snippet.highlights[-1][1] if snippet.highlights else 0
    start = max(0, min((begin + end - width) // 2, begin, len(snippet.text) - width))
    return snippet.text[start : start + width]


@text_of.register
def _(found: About) -> str:
    more = f"More: give a larger max_tokens than {found.max_tokens}." if found.more else ""
    return lines((*map(text_of, found.items), found.note, more)) or "Nothing."


@text_of.register
def _(item: AboutItem) -> str:
    cut = "" if item.is_whole else " (in part)"
    place = f"[{item.conversation_id}: {span(item)}]"
    text = withheld(item) or item.text
    return f"{item.id} {place} {item.role or 'summary'} {minute(item.created_at)}{cut}: {text}"


@text_of.register
def _(described: Description) -> str:
    named = joined(
        (
            f"{described.id}: {described.summary_kind or described.role or ''} {described.kind}".replace(":  ", ": "),
            described.author,
            f"depth {described.depth}" if described.depth is not None else None,
            _position(described),
            _when(described.earliest_at, described.latest_at) or minute(described.created_at),
            counted(described.token_count, "token") if described.token_count is not None else None,
            {True: "in the context", False: "not in the context", None: None}[described.active],
        )
    )
    sure = described.confidence is not None and f"confidence {described.confidence:.2f}: {described.confidence_reason}"
    opening = described.opening_tokens is not None and f"{described.opening_tokens:,} to open"
    made_of = described.message_count is not None and f"of {counted(described.message_count, 'message')}"
    costing = described.source_tokens is not None and f"made from {counted(described.source_tokens, 'token')}"
    held = {outline.summary_id for outline in described.held_by}
    derived = ", ".join(each for each in described.derived if each not in held)
    text = withheld(described) or _content_with_few_names(described) or reader_text(described)
    return lines(
        (
            named,
            joined((made_of or None, costing or None, opening or None, sure or None)),
            as_fields(described, without=_LEFT_OUT_OF_DESCRIPTIONS),
            f"derived: {derived}" if derived else None,
            _outlines("below", map(_below, described.manifest), is_complete=described.manifest_complete),
            _outlines("contained in", map(_above, described.held_by)),
            text,
            cursor_line(described.cursor),
        )
    )


def _content_with_few_names(described: Description) -> str | None:
    """The content of a condensed summary, with a shortened list of names."""
    if not described.depth or not described.content:
        return None
    return with_few_names(described.content, most=MOST_NAMES, hint="lcm_expand shows them")


def _position(described: Description) -> str | None:
    if described.first_seq is None:
        return f"of conversation {described.conversation_id}" if described.conversation_id is not None else None
    return f"[{described.conversation_id}: {span(described)}]"


def _when(first: datetime | None, last: datetime | None) -> str | None:
    return period(first, last) if first is not None and last is not None else None


def _outlines(name: str, outlines: Iterable[str], *, is_complete: bool = True) -> str:
    shown = list(outlines)
    if not shown:
        return ""
    more = len(shown) - MOST_OUTLINES
    behind = [f"- and {more:,}{'' if is_complete else ' or more'} others"] if more > 0 else []
    return lines((f"{name}:", *shown[:MOST_OUTLINES], *behind))


@text_of.register
def _(outline: SummaryOutline) -> str:
    cost = f"{outline.token_count:,} tokens, {outline.opening_tokens:,} to open"
    return f"- {outline.summary_id} [{span(outline)}] depth {outline.depth}, {cost}{_state(outline)}"


def _below(outline: SummaryOutline) -> str:
    """A line for a summary that can be expanded next."""
    return f"- {outline.summary_id} [{span(outline)}] {outline.opening_tokens:,} tokens to open{_state(outline)}"


def _above(outline: SummaryOutline) -> str:
    return f"- {outline.summary_id} [{span(outline)}]{_state(outline)}"


def _state(outline: SummaryOutline) -> str:
    again = f", superseded by {outline.superseded_by}" if outline.superseded_by else ""
    return f"{', in the context' if outline.active else ''}{again}"


@text_of.register
def _(described: RangeDescription) -> str:
    size = joined(
        (
            counted(described.message_count, "message"),
            counted(described.message_tokens, "token"),
            f"in the context {described.context_tokens:,}",
            f"not summarized: {', '.join(map(span, described.raw_messages))}" if described.raw_messages else None,
        )
    )
    below = _outlines("below", map(_below, described.manifest), is_complete=described.manifest_complete)
    return lines((f"{size}.", *map(text_of, described.nodes), below, described.note))


@text_of.register
def _(node: CoveringNode) -> str:
    share = f"{text_of(node.summary)}, {counted(node.messages_in_range, 'message')} of the range"
    return lines((share, withheld(node) or node.content))


@text_of.register
def _(expanded: ExpandResult | RangeExpansion | SessionExpansion) -> str:
    gap = None if isinstance(expanded, SessionExpansion) else expanded.gap
    # A cursor already shows that there is more, so the note is left out.
    note = None if expanded.cursor else expanded.note
    return lines((_items(expanded.items, gap), note, cursor_line(expanded.cursor)))


def _items(items: Sequence[ExpandedItem], gap: MessageSpan | None) -> str:
    """The items of a page, messages grouped by day, with `gap` before the last item."""
    shown: list[str] = []
    day = ""
    for place, item in enumerate(items, start=1):
        if gap is not None and place == len(items):
            shown.append(f"... {span(gap)} ...")
        if item.kind is ItemKind.MESSAGE and (item_day := minute(item.created_at)[:10]) != day:
            day = item_day
            shown.append(day)
        shown.append(_expanded(item))
    return lines(shown)


def _expanded(item: ExpandedItem) -> str:
    history = item if isinstance(item, HistoryItem) else None
    place = f"{history.conversation_id}: " if history is not None and history.conversation_id is not None else ""
    kind = history.history_kind if history is not None and history.history_kind is not None else None
    source = kind or item.role or f"{item.summary_kind} summary"
    is_short = item.kind is ItemKind.MESSAGE and item.complete and item.tokens < SHORT_TOKENS
    name = "" if is_short else f"{item.id} "
    when = _when(item.earliest_at, item.latest_at)
    of_summary = f" {when}" if when else ""
    return f"{name}[{place}{span(item)}] {_speaker(source, item.author)}{of_summary}: {reader_text(item)}"


@text_of.register
def _(entry: TimelineEntry) -> str:
    named = joined(
        (
            f"{entry.id or 'no summary yet'}: {entry.kind} {entry.title or entry.session_id or ''}".rstrip(),
            entry.project,
            f"conversation {entry.conversation_id}" if entry.conversation_id is not None else None,
            counted(entry.message_count, "message") if entry.message_count is not None else None,
            f"{entry.behind:,} newer" if entry.behind else None,
            counted(entry.sessions, "session") if entry.sessions else None,
            period(entry.earliest_at, entry.latest_at),
            f"{entry.parent_link} of conversation {entry.parent_id}" if entry.parent_link else None,
            f"in {entry.part_of}" if entry.part_of else None,
        )
    )
    return lines((named, withheld(entry) or entry.content))


@text_of.register
def _(context: AssembledContext) -> str:
    shown = (f"{item.id} [{span(item)}] {item.role}: {item.text}" for item in context.items)
    sent = (json.dumps(dict(each), ensure_ascii=False) for each in (*context.system, *context.messages))
    repairs = (f"{each.kind}: {each.what} ({', '.join(each.item_ids)})" for each in context.repairs)
    receipt = f"The receipt is {context.receipt_id}." if context.receipt_id else None
    return lines((*shown, *sent, *repairs, receipt, summary_of_context(context), context.note))


def summary_of_context(context: AssembledContext) -> str:
    """The tokens of a context, and the number of items that it leaves out."""
    left_out = context.left_out
    over = ", over budget" if context.over_budget else ""
    return (
        f"{counted(context.total_tokens, 'token')} of {context.budget:,}{over}; left out: "
        f"{counted(left_out.messages, 'message')} and {counted(left_out.summaries, 'summary')}, "
        f"{counted(left_out.tokens, 'token')}."
    )


@text_of.register
def _(section: RecallSection) -> str:
    return lines((section.text, f"{counted(section.tokens, 'token')} of {section.limit:,}."))


@text_of.register
def _(message: MessageRecord) -> str:
    speaker = _speaker(message.role, message.author)
    place = f"[{message.conversation_id}: {message.seq}]"
    head = f"{message.id} {place} {speaker} {minute(message.created_at)}, {counted(message.token_count, 'token')}"
    more = as_fields(message, without=_LEFT_OUT_OF_MESSAGES)
    return lines((head, more, reader_text(message)))


_LEFT_OUT_OF_MESSAGES = frozenset({
    "message_id", "conversation_id", "seq", "role", "content", "token_count", "token_counter", "created_at", "author",
    "parts", "erased_by_id", "quarantined",
})  # fmt: skip
