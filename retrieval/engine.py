"""Search, describe, expand and list stored messages, summaries and files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import Histogram

from conversations.content.tokens import TokenEstimator
from conversations.scope import EVERYTHING, Scope
from conversations.types import PartType, Role
from retrieval.assembly.about import NameReader
from retrieval.describing.browsing import ConversationBrowser
from retrieval.describing.describe import describe
from retrieval.describing.lineage import LineageReader
from retrieval.describing.ranges import RangeReader
from retrieval.describing.window import WindowReader
from retrieval.expansion.expand import Expansion
from retrieval.policy import RetrievalPolicy
from retrieval.search.grep import Grep
from retrieval.search.request import SearchRequest
from retrieval.types import BranchChoice, Description, GrepMode, GrepResult, GrepScope, GrepSort

MILLISECONDS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0)
SEARCH_LATENCY = Histogram("lcm_search_latency_ms", "How long a search took, in milliseconds.", buckets=MILLISECONDS)
EXPAND_LATENCY = Histogram(
    "lcm_expand_latency_ms", "How long a page of an expansion took, in milliseconds.", buckets=MILLISECONDS
)


@contextmanager
def timed(histogram: Histogram) -> Iterator[None]:
    """Record how many milliseconds a block or function takes, even if it fails."""
    began = time.perf_counter()
    try:
        yield
    finally:
        histogram.observe((time.perf_counter() - began) * 1000)


@dataclass(frozen=True)
class RetrievalEngine(NameReader, Expansion, RangeReader, LineageReader, WindowReader, ConversationBrowser):
    """Reads one workspace or, for workers and the site administrator, all of them."""

    # Timed here, where all faces call them.
    about = timed(SEARCH_LATENCY)(NameReader.about)
    expand = timed(EXPAND_LATENCY)(Expansion.expand)
    expand_range = timed(EXPAND_LATENCY)(Expansion.expand_range)

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> RetrievalEngine:
        return cls(policy=RetrievalPolicy.from_settings(), tokens=TokenEstimator.from_settings(), scope=scope)

    @timed(SEARCH_LATENCY)
    def grep(
        self,
        *,
        query: str,
        mode: GrepMode | str = GrepMode.FULL_TEXT,
        scope: GrepScope | str = GrepScope.BOTH,
        sort: GrepSort | str | None = None,
        limit: int = 20,
        max_tokens: int | None = None,
        cursor: str | None = None,
        cold: bool = False,
        conversation_id: int | None = None,
        conversation_ids: Sequence[int] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        roles: Sequence[Role | str] | None = None,
        part_types: Sequence[PartType | str] | None = None,
        tool_names: Sequence[str] | None = None,
        from_seq: int | None = None,
        to_seq: int | None = None,
        depth: int | None = None,
        under: str | None = None,
        branch: BranchChoice | str = BranchChoice.ACTIVE,
    ) -> GrepResult:
        """Search messages, summaries and files in one, several or all conversations.

        Full text takes words, "phrases", `or` and -exclusions, and returns the best match first. If the query is a
        sentence, or too few texts contain every word, texts with any of the words are returned, and `relaxed` is true;
        by relevance also messages beside them. A regular expression returns the newest match first. A page holds at
        most `limit` matches and `max_tokens` tokens; `next_cursor` continues it. A filter that only messages have, such
        as roles, excludes summaries and files.

        Only the active path of each conversation is searched; the branch `all` also searches messages off the active
        path. Messages in cold storage are not indexed; `cold_messages` counts them. `cold` searches only cold messages,
        newest first, for all of the words or for the regular expression. Its pages may have few matches or none: follow
        `next_cursor` to the end.

        Raises Invalid `invalid_params` for a query without words and for contradictory filters; Invalid `bad_pattern`;
        NotFound for an unknown conversation or summary; Invalid `search_timeout` if the search takes too long.
        """
        request = SearchRequest(
            query,
            GrepMode(mode),
            GrepScope(scope),
            GrepSort(sort) if sort is not None else None,
            limit=limit,
            max_tokens=max_tokens,
            cursor=cursor,
            cold=cold,
            conversation_id=conversation_id,
            conversation_ids=tuple(dict.fromkeys(conversation_ids or ())),
            since=since,
            until=until,
            roles=tuple(roles or ()),
            part_types=tuple(part_types or ()),
            tool_names=tuple(tool_names or ()),
            from_seq=from_seq,
            to_seq=to_seq,
            depth=depth,
            under=under,
            branch=BranchChoice(branch),
        )
        return Grep(policy=self.policy, scope=self.scope, tokens=self.tokens).run(request)

    def describe(self, *, id: str, token_cap: int | None = None, cursor: str | None = None) -> Description:
        """Describe a summary, message, file, run or conversation, and its relations.

        A summary is returned with its text. A message is returned with a page of its exact text, at most `token_cap`
        tokens; `next_cursor` continues it. A session, arc or epoch summary (ses_...) is returned with its sources. Name
        a conversation by its number, its id (`conv_7`) or its session (`session:7` for the name 7); a name that is both
        an id and a session is read as the id. The id may also be part of a longer text, such as a summary's element.
        Raises NotFound if the id does not exist or the caller may not see it; Invalid for a number that is also the
        session of another conversation; Invalid `bad_cursor` for a cursor of another message.
        """
        described = describe(id, scope=self.scope)
        return self.description(described, token_cap=token_cap, cursor=cursor)
