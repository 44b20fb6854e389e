"""Search, describe, expand and list stored messages, summaries and files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import Histogram

from compaction.policy import CompactionPolicy
from conversations.content.tokens import TokenEstimator
from conversations.scope import EVERYTHING, Scope
from conversations.types import PartType, Role
from retrieval.assembly.about import About, about
from retrieval.describing.browsing import BrowseSort, ConversationPage, browse
from retrieval.describing.describe import describe
from retrieval.describing.lineage import MOST_LEVELS, Direction, Impact, impact, lineage
from retrieval.describing.ranges import RangeDescription, RangeExpansion, describe_range
from retrieval.describing.window import LineageWindow, lineage_window
from retrieval.expansion.expand import Expansion
from retrieval.policy import RetrievalPolicy
from retrieval.search.grep import Grep
from retrieval.search.request import SearchRequest
from retrieval.types import BranchChoice, Description, ExpandResult, GrepMode, GrepResult, GrepScope, GrepSort, Lineage

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
class RetrievalEngine:
    """Reads one workspace or, for workers and the site administrator, all of them."""

    policy: RetrievalPolicy
    tokens: TokenEstimator
    scope: Scope = EVERYTHING

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

        Full text takes words, "phrases", `or` and -exclusions, best match first; for a sentence, or if too few texts
        hold every word, texts with any of them are returned, and `relaxed` is set. A regular expression returns the
        newest match first. A page holds at most `limit` matches and `max_tokens` tokens; the cursor continues it. A
        filter on a property of messages alone, such as their roles, excludes everything else. Raises Invalid for a
        query that cannot be searched and for contradictory filters, NotFound for an unknown conversation or summary;
        an error with the code `search_timeout` if it takes too long.

        Messages in cold storage are in no index; `cold_messages` counts them. With `cold`, only these are searched,
        newest first, for all of the words or the expression, over as many pages as it takes.

        Only the active path of each conversation is searched; with the branch `all`, abandoned branches and what the
        head was moved back from as well.
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

        A summary comes with its text, a message with a page of its exact text of at most `token_cap` tokens, which the
        returned cursor continues. A session, arc or epoch summary (ses_...) comes with its sources. A conversation is
        named by its id, such as `conv_7`, or by its session; a name that is both is taken as the id. An id may also be
        embedded in a text, such as a summary's element. Raises NotFound for an id that does not exist or that the
        caller may not see; Invalid (`bad_cursor`) for a cursor of another message.
        """
        described = describe(id, scope=self.scope)
        return Expansion(policy=self.policy, tokens=self.tokens, scope=self.scope).description(
            described, token_cap=token_cap, cursor=cursor
        )

    def describe_range(self, *, conversation_id: int, from_seq: int, to_seq: int) -> RangeDescription:
        """Describe which summaries and messages cover a range, and what opening costs.

        The covering summaries come with their text, how many messages of the range they stand for and how far they
        reach beyond it. Raises NotFound for an unknown conversation, Invalid for a range that runs backwards.
        """
        return describe_range(
            conversation_id=conversation_id,
            from_seq=from_seq,
            to_seq=to_seq,
            text_tokens=self.policy.max_expand_tokens,
            scope=self.scope,
        )

    def impact(
        self,
        *,
        id: str,
        direction: Direction | str = Direction.UPSTREAM,
        max_depth: int = MOST_LEVELS,
        min_confidence: float = 0.0,
        limit: int = 50,
    ) -> Impact:
        """List what depends on a message, a summary or a file, by distance.

        If it were wrong, so might these be: at distance 1 they WILL BREAK, at 2 they are LIKELY AFFECTED, and further
        on they MAY NEED TESTING. Upstream goes to what derives from it: from a file to the messages that name it, from
        messages to summaries, and on to the session, arc and epoch summaries of its project. Downstream goes to what it
        was made from. A link has the confidence of the summary made by it: 0.7 at the normal level, 0.5 at aggressive,
        0.3 at deterministic; links below `min_confidence` are not followed. All are counted, the nearest `limit` are
        listed. Raises NotFound.
        """
        return impact(
            id,
            direction=Direction(direction),
            max_depth=max_depth,
            min_confidence=min_confidence,
            limit=limit,
            scope=self.scope,
        )

    @timed(SEARCH_LATENCY)
    def about(
        self,
        *,
        entity: str,
        aspect: str | None = None,
        question: str | None = None,
        max_tokens: int = 2000,
        conversation_id: int | None = None,
    ) -> About:
        """Gather what mentions a name or an identifier, best match first.

        Returns the messages and summaries that contain it verbatim, in one conversation or the whole workspace, with
        their ids, sessions and times, within `max_tokens` tokens: short ones whole, of others the piece around the
        match. With an `aspect`, only those that mention it too, if there are any; a `question` ranks them. Cite the
        ids; describe reads a message in full, expand opens a summary. No model is called. Raises Invalid for a name
        that cannot be searched for, NotFound for an unknown conversation.
        """
        grep = Grep(policy=self.policy, scope=self.scope, tokens=self.tokens)
        return about(
            grep,
            entity=entity,
            aspect=aspect,
            question=question,
            max_tokens=max_tokens,
            conversation_id=conversation_id,
        )

    @timed(EXPAND_LATENCY)
    def expand(
        self,
        *,
        summary_id: str,
        depth: int = 1,
        include_messages: bool = False,
        token_cap: int | None = None,
        keep_ends: bool = False,
        cursor: str | None = None,
    ) -> ExpandResult:
        """Open a summary: a page of its sources, in order, within `token_cap` tokens.

        `depth` levels are opened, all of them with -1. The returned cursor continues exactly where the page stopped, so
        that every byte can be read. With `keep_ends`, a page that cannot hold everything still ends with the very last
        item; `gap` says what was skipped, and the cursor continues there. Raises NotFound; Invalid (`bad_cursor`) for a
        cursor of another expansion.
        """
        return Expansion(policy=self.policy, tokens=self.tokens, scope=self.scope).page(
            summary_id=summary_id,
            depth=depth,
            include_messages=include_messages,
            token_cap=token_cap,
            keep_ends=keep_ends,
            cursor=cursor,
        )

    @timed(EXPAND_LATENCY)
    def expand_range(
        self,
        *,
        conversation_id: int,
        from_seq: int,
        to_seq: int,
        depth: int = 1,
        include_messages: bool = False,
        only_messages: bool = False,
        token_cap: int | None = None,
        keep_ends: bool = False,
        cursor: str | None = None,
    ) -> RangeExpansion:
        """Open a range of messages: a page in order, within `token_cap` tokens.

        The first layer is the active context, where summaries stand for the older messages. `depth` layers are opened,
        all of them with -1; `include_messages` adds the messages of these layers. `only_messages` returns every message
        of the range and no summaries. The cursor and `keep_ends` are those of `expand`; all pages go through the
        context as it was at the first, whatever is compacted meanwhile. Raises NotFound; Invalid for a range that runs
        backwards, and (`bad_cursor`) for a cursor of another expansion.
        """
        return Expansion(policy=self.policy, tokens=self.tokens, scope=self.scope).range_page(
            conversation_id=conversation_id,
            from_seq=from_seq,
            to_seq=to_seq,
            depth=depth,
            include_messages=include_messages,
            only_messages=only_messages,
            token_cap=token_cap,
            keep_ends=keep_ends,
            cursor=cursor,
        )

    def lineage(self, *, conversation_id: int) -> Lineage:
        """Read all summaries of a conversation and their sources. Raises NotFound."""
        return lineage(conversation_id, scope=self.scope)

    def lineage_window(
        self,
        *,
        conversation_id: int,
        from_seq: int | None = None,
        to_seq: int | None = None,
        as_of_run: str | None = None,
        with_messages: bool = True,
        resolution: int | None = None,
    ) -> LineageWindow:
        """Read the lineage between two seqs: summaries, raw stretches, few messages.

        Without seqs it is the whole history. `as_of_run` reads it as of the end of that run. `resolution` is how many
        columns a drawing of the window has: summaries narrower than one column, and outside the active context, come
        in bundles. Raises NotFound; Invalid for a window that runs backwards.
        """
        return lineage_window(
            conversation_id=conversation_id,
            from_seq=from_seq,
            to_seq=to_seq,
            as_of_run=as_of_run,
            with_messages=with_messages,
            resolution=resolution,
            scope=self.scope,
        )

    def browse(
        self,
        *,
        query: str | None = None,
        sort: BrowseSort | str = BrowseSort.UPDATED,
        page: int = 1,
        limit: int = 25,
    ) -> ConversationPage:
        """List the workspace's conversations with their context and its pressure.

        `query` matches titles and the names of sessions.
        """
        return browse(
            query=query,
            sort=sort,
            page=page,
            limit=limit,
            policy=CompactionPolicy.from_settings(),
            scope=self.scope,
        )
