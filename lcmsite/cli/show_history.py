"""Show summaries of sessions, arcs and epochs on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from compaction.history.types import HistoryKind
from compaction.rendering import ERASED
from conversations.humanize import counted
from lcmsite.answers.answer_text import span
from lcmsite.answers.found_texts import withheld
from lcmsite.cli.terminal_layout import Screen, blanked, cell, show_one
from retrieval.history.types import HistoryItem, SessionAgo, SessionExpansion, SessionMatches, TimelineEntry


@show_one.register
def _(entry: TimelineEntry, screen: Screen) -> None:
    named = entry.title or entry.session_id or ""
    screen.heading(f"{entry.kind} {named}".rstrip(), entry.id or "no summary yet", *_figures(entry))
    if entry.quarantined:
        screen.line("[quarantined: made from content that no model may see]\n")
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
        screen.body(withheld(item) or item.content or item.parts_json)
    screen.note(f"{counted(expanded.tokens, 'token')}.")
    if expanded.superseded_by:
        screen.note(f"A newer summary replaced it: {expanded.superseded_by}.")
    if expanded.cursor:
        options = [f"--depth {expanded.depth}"] if expanded.depth != 1 else []
        options += ["--include-messages"] if expanded.include_messages else []
        again = " ".join(["lcm expand-session", expanded.summary_id, *options, f"--cursor={expanded.cursor}"])
        screen.line(f"There is more: {again}")


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
        snippet = Text(blanked(match.snippet.text))
        for start, end in match.snippet.highlights:
            snippet.stylize("bold", start, end)
        screen.console.print(snippet, soft_wrap=True)
        screen.line()
    relaxed = ", any of the words" if found.relaxed else ""
    screen.note(f"{counted(len(found.matches), 'match', 'matches')}{relaxed}.")
    if found.next_cursor:
        screen.note(f"There is more: the same again with --cursor={found.next_cursor}")
