"""Carry out the reads of a sub-agent under its grant, and count their tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from compaction.rendering import QUARANTINED
from compaction.summarizing.extractive.clean_text import fit
from conversations.errors import LcmError, NotFound
from conversations.humanize import counted
from conversations.store.read import messages_of
from conversations.store.withheld import readable
from conversations.types import MessageRecord
from retrieval.delegation.actions import Action, Describe, Expand, Find, More
from retrieval.delegation.extent import Extent, matches_within
from retrieval.delegation.grants import Grants
from retrieval.delegation.types import GrantExceeded, GrantRecord, GrantRecursion
from retrieval.engine import RetrievalEngine
from retrieval.ids import Named, named
from retrieval.types import Description, ExpandedItem, ItemKind, Match

# The maximum tokens of one result: several small results are better for a model than one that uses up the grant.
MOST_AT_ONCE = 2_000
MOST_MATCHES = 12
# The tokens reserved for the heading of an item, and for the line that says how to continue.
_HEADING_TOKENS, _MORE_TOKENS = 30, 40
# If a page with its headings does not fit, a smaller page is read: by at least this factor, up to this many attempts.
_ATTEMPTS, _SMALLER = 3, 0.7
_DELEGATING = ("expand_query", "lcm_expand_query", "delegate")


class Read(NamedTuple):
    """The result of an action: a text for the model, and its number of tokens."""

    text: str
    tokens: int


class Page(NamedTuple):
    """A page of an expansion: the first page, or the page at the cursor."""

    summary_id: str
    depth: int
    messages: bool
    cursor: str | None = None


@dataclass(frozen=True)
class GrantedReader:
    """Carries out the reads under one grant; `pages` are the next pages of results."""

    engine: RetrievalEngine
    grants: Grants
    grant: GrantRecord
    extent: Extent
    pages: dict[str, Page] = field(default_factory=dict)

    def read(self, action: Action) -> Read:
        """Carry out an action; count a refusal on the grant, and raise it."""
        match action:
            case Find(query=query):
                return self._reserved(lambda room: fit(self._found(query), room, self._count))
            case Describe(id=id):
                allowed = self._within(id)
                return self._reserved(lambda room: fit(self._described(allowed), room, self._count))
            case Expand(id=id, depth=depth, messages=messages):
                allowed = self._within(id)
                if allowed.kind is ItemKind.MESSAGE:
                    return self._reserved(lambda room: self._message(allowed, room))
                page = Page(allowed.id, self._levels(allowed.id, depth), messages)
                return self._reserved(lambda room: self._page(page, room))
            case More(handle=handle):
                if handle not in self.pages:
                    raise self._refused(NotFound(f"There is no handle {handle[:20]!r}."))
                return self._reserved(lambda room: self._page(self.pages[handle], room))
        if action.name in _DELEGATING:
            raise self._refused(GrantRecursion("A reader under a grant cannot delegate further."))
        raise self._refused(NotFound(f"There is no action {action.name[:20]!r} here."))

    def _reserved(self, answer: Callable[[int], str]) -> Read:
        """Reserve tokens, build a result of at most this size, and count its tokens."""
        with self.grants.reserve(grant_id=self.grant.grant_id, wanted=MOST_AT_ONCE) as room:
            text = answer(room.tokens)
            room.used = min(room.tokens, self._count(text))
        return Read(text, room.used)

    def _count(self, text: str) -> int:
        return self.engine.tokens.count(text)

    def _refused(self, refusal: LcmError) -> LcmError:
        return self.grants.count_refusal(grant_id=self.grant.grant_id, refusal=refusal)

    def _within(self, id: str) -> Named:
        """Parse an id. Raises NotFound if it is unknown or outside the grant."""
        found = named(id)
        if found is None or not self.extent.within([found]):
            raise self._refused(NotFound(f"There is no {id[:80]!r} that you may read."))
        return found

    def _levels(self, summary_id: str, depth: int) -> int:
        """The number of levels to open: as requested, but at most what the grant allows."""
        left = self.extent.levels_left(summary_id)
        if left < 1:
            raise self._refused(
                GrantExceeded(f"You may read {counted(self.extent.depth, 'level')} down, and not below {summary_id}.")
            )
        return left if depth < 0 else min(depth, left)

    def _found(self, query: str) -> str:
        found = matches_within(self.engine, query, self.extent, limit=MOST_MATCHES)
        lines = [
            f"{match.id} [{_place(match)}, {match.role or match.kind}] {match.snippet.text or _withheld(match)}"
            for match in found
        ]
        return "\n".join(lines) if lines else "Nothing that you may read holds these words; try others."

    def _described(self, allowed: Named) -> str:
        found = self.engine.describe(id=allowed.id)
        head = f"{found.id} [{_place(found)}], {counted(found.token_count or 0, 'token')}"
        if found.kind is ItemKind.MESSAGE:
            return f"{head}, {found.role}, {found.created_at:%Y-%m-%d %H:%M}"
        # The grant does not cover other sources.
        sources = [source for source in found.sources if source in self.extent.levels]
        return "\n".join(
            [
                f"{head}, {found.summary_kind} summary of {counted(found.message_count or 0, 'message')}, "
                f"{found.earliest_at:%Y-%m-%d %H:%M} to {found.latest_at:%Y-%m-%d %H:%M}; opening it costs "
                f"{counted(found.opening_tokens or 0, 'token')}.",
                f"Made from summaries: {', '.join(sources) or 'none'}.",
                found.content or _withheld(found),
            ]
        )

    def _message(self, allowed: Named, room: int) -> str:
        [message] = readable(messages_of([allowed.number]))
        content = message.content or _withheld(message)
        return fit(f"{message.id} [{message.seq}, {message.role}]\n{content}", room, self._count)

    def _page(self, page: Page, room: int) -> str:
        """Render a page of an expansion, with headings, within `room` tokens."""
        cap = max(1, room - _MORE_TOKENS)
        for _ in range(_ATTEMPTS):
            result = self.engine.expand(
                summary_id=page.summary_id,
                depth=page.depth,
                include_messages=page.messages,
                token_cap=cap,
                cursor=page.cursor,
            )
            text = "\n\n".join(map(_shown, result.items)) or result.note or "It holds nothing."
            if self._count(text) <= room - _MORE_TOKENS:
                break
            cap = max(1, int(min(cap - _HEADING_TOKENS * len(result.items), cap * _SMALLER)))
        if result.cursor is not None:
            handle = f"c{len(self.pages) + 1}"
            self.pages[handle] = page._replace(cursor=result.cursor)
            goes_on = f'There is more: {{"action": "more", "handle": "{handle}"}}'
            text = f"{fit(text, room - _MORE_TOKENS, self._count)}\n\n{goes_on}"
        return fit(text, room, self._count)


def _shown(item: ExpandedItem) -> str:
    who = item.role or f"{item.summary_kind} summary of {counted(item.descendant_count or 0, 'message')}"
    # The parts of a message are not shown: for a message that comes in slices, they repeat its content.
    return f"{item.id} [{_place(item)}, {who}, {item.created_at:%Y-%m-%d %H:%M}]\n{item.content or _withheld(item)}"


def _withheld(item: Match | Description | ExpandedItem | MessageRecord) -> str:
    return QUARANTINED if item.quarantined else ""


def _place(item: Match | Description | ExpandedItem) -> str:
    return str(item.first_seq) if item.first_seq == item.last_seq else f"{item.first_seq}-{item.last_seq}"
