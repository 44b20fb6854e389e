"""One page of matches: no more than the limit, no more tokens than its cap, and how the next one begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from conversations.content.tokens import TokenEstimator
from retrieval.types import GrepSort, Match

# What a match takes in JSON besides the texts in it: names, ids, times, the marks around them; and each highlight.
FRAME_TOKENS, HIGHLIGHT_TOKENS = 160, 8


class Position(NamedTuple):
    """The key of the last match that was given, how the query was interpreted, and what there was at the first page."""

    key: tuple[Any, ...]
    interpretation: int = 0
    newest: int = 0
    size: int = 0
    at: datetime | None = None


class PageContent(NamedTuple):
    """What goes on the page, and where the next page begins: `behind` this position, if there is one."""

    matches: tuple[Match, ...]
    behind: Position | None
    relaxed: bool = False
    used: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    bounded: bool = False
    note: str | None = None
    sort: GrepSort | None = None
    cold_messages: int = 0


class Page(NamedTuple):
    """What a page has room for, and where it begins."""

    limit: int
    max_tokens: int
    tokens: TokenEstimator | None
    position: Position | None = None

    def filled(
        self, found: Sequence[Match], position: Callable[[int], Position], *, has_more: bool, **about: Any
    ) -> PageContent:
        """As many of these matches as there is room for, and at least one, so that the pages come to an end.

        `position` gives that of the match at a place.
        """
        fitting = self._fitting(found)
        has_more = has_more or fitting < len(found)
        behind = position(fitting - 1) if has_more and fitting else None
        return PageContent(tuple(found[:fitting]), behind, **about)

    def _fitting(self, found: Sequence[Match]) -> int:
        # No text has more tokens than bytes: mostly that is enough to know, and none needs to be counted, or but a few.
        most = [_tokens(match, _bytes) for match in found]
        count = self.tokens.count if self.tokens is not None else _bytes
        room, ahead = self.max_tokens, sum(most)
        for place, match in enumerate(found):
            if ahead <= room:
                break
            ahead -= most[place]
            room -= _tokens(match, count)
            if room < 0:
                return max(1, place)
        return len(found)


def _tokens(match: Match, count: Callable[[str], int]) -> int:
    texts = filter(None, (match.snippet.text, match.author, match.file_name))
    return FRAME_TOKENS + HIGHLIGHT_TOKENS * len(match.snippet.highlights) + sum(map(count, texts))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
