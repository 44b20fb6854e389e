"""The first question of every search: what there is where it is to look, and what its words mean.

Asked together with setting the limits, as each of the three takes less time than to ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from conversations.fast.lookup import OneRow
from conversations.models import Conversation
from conversations.scope import Scope, unseen
from conversations.sql import array, bigint
from retrieval.limits import IMPOSED
from retrieval.search.criteria import Criteria, wrong
from retrieval.search.filters import IN_WORKSPACE, Reach
from retrieval.search.meanings import Meanings
from retrieval.search.query.parser import Question
from retrieval.search.query.word_statistics import COUNTED
from retrieval.search.searchables import FILES, SUMMARIES
from retrieval.search.tools import of_rare_tools
from retrieval.search.vocabulary import LEXED, Asking, terms_of

# What a summary was made from, all the way down; and of what was made again, the newer.
_UNDER = """
    under AS MATERIALIZED (
        SELECT summary_id, conversation_id, first_seq, last_seq
        FROM summaries WHERE summary_id = %(under)s AND {owned}
    ), below AS (
        SELECT parent_summary_id AS id FROM summary_parents WHERE summary_id = (SELECT summary_id FROM under)
        UNION
        SELECT further.id FROM below, LATERAL (
            SELECT parent_summary_id AS id FROM summary_parents WHERE summary_id = below.id
            UNION ALL
            SELECT summary_id FROM summaries WHERE supersedes_id = below.id
        ) AS further
    )
"""
_OF_UNDER = """
    (SELECT conversation_id FROM under), (SELECT first_seq FROM under), (SELECT last_seq FROM under),
    ARRAY(SELECT id FROM below)
"""
_OF_NOTHING = "NULL::bigint, NULL::bigint, NULL::bigint, ARRAY[]::text[]"
# Half of what it takes to look few words up is planning, for each kind of thing: of what one conversation has none of,
# nothing needs to be planned.
_ONE = """
    extent AS (
        SELECT next_seq - 1 AS size, cold_messages::bigint AS cold, next_seq - 1 AS newest, NULL::bigint[] AS named,
               EXISTS (
                   SELECT FROM summaries WHERE summaries.conversation_id = conversations.conversation_id
               ) AS has_summaries,
               EXISTS (
                   SELECT FROM large_files WHERE large_files.conversation_id = conversations.conversation_id
               ) AS has_files{row}
        FROM conversations WHERE {where}
    )
"""
_MANY = """
    extent AS (
        SELECT coalesce(sum(next_seq - 1), 0)::bigint AS size, coalesce(sum(cold_messages), 0)::bigint AS cold,
               (SELECT coalesce(max(message_id), 0) FROM messages) AS newest, {named} AS named,
               true AS has_summaries, true AS has_files
        FROM conversations WHERE {where}
    )
"""
_OPENING = """
    WITH RECURSIVE {steps}
    SELECT {imposed}, size, cold, newest, named, has_summaries, has_files, {under}{row}{told}
    FROM (SELECT) AS always LEFT JOIN extent ON true{lexed}
"""
# How many of the columns are of the reach; those of the words come behind them.
_OF_REACH = 10


@dataclass(frozen=True)
class Opened:
    """How far a search reaches, and what the words of its questions mean."""

    reach: Reach
    meanings: Meanings
    conversation: Conversation | None = None


@dataclass(frozen=True)
class Opening:
    """The question, for `limits.bounded` to ask first. `questions`: those that may be looked up.

    `with_row`: of one conversation, its row is read, too, for whoever has more to do with it than to search it.
    `ranks`: what the terms mean is told as far as to rank by it.
    """

    criteria: Criteria
    scope: Scope
    questions: Sequence[Question] = field(default=())
    with_row: bool = False
    ranks: bool = True

    @cached_property
    def asking(self) -> Asking:
        return Asking.about(terms_of(self.questions), ranks=self.ranks)

    @property
    def statement(self) -> str:
        asked = self.criteria
        return _statement(
            is_under=asked.under is not None,
            is_one=asked.conversation_id is not None,
            is_named=bool(asked.conversation_ids),
            is_owned=self.scope.workspace_id is not None,
            told=self.asking.columns if self.asking.terms else None,
            is_lexed=bool(self.asking.new),
            with_row=self.with_row,
        )

    @property
    def values(self) -> Mapping[str, Any]:
        """NotFound for what no row can be called, which PostgreSQL would refuse to look for."""
        asked = self.criteria
        if asked.under is not None:
            if not asked.under.isprintable():
                raise unseen("summary", asked.under)
        elif asked.conversation_id is not None and not _is_askable(asked.conversation_id):
            raise unseen("conversation", asked.conversation_id)
        return {
            "workspace_id": self.scope.workspace_id,
            "conversation_id": None if asked.conversation_id is None else bigint(asked.conversation_id),
            "conversation_ids": array(filter(_is_askable, asked.conversation_ids)),
            "under": asked.under,
            **self.asking.values,
        }

    def opened(self, told: Sequence[tuple[Any, ...]]) -> Opened:
        """By what was told; NotFound for a conversation or a summary that the scope does not have."""
        reach = self._reach(*told[0][:_OF_REACH])
        if reach.criteria.tool_names:
            asked = reach.criteria
            reach = replace(reach, of_tools=of_rare_tools(asked.tool_names, asked.conversation_id))
        of_row = _OF_REACH + (len(_row().columns) if self.with_row else 0)
        return Opened(
            reach,
            Meanings.told(self.asking, [row[of_row:] for row in told]),
            _row().made(told[0][_OF_REACH:of_row]) if self.with_row else None,
        )

    def _reach(
        self,
        size: int | None,
        cold: int,
        newest: int,
        named: Sequence[int] | None,
        has_summaries: bool,
        has_files: bool,
        of: int | None,
        first: int | None,
        last: int | None,
        below: Sequence[str],
    ) -> Reach:
        asked = self.criteria
        if asked.under is not None:
            if of is None:
                raise unseen("summary", asked.under)
            asked = _within(asked, of)
        if size is None:
            raise unseen("conversation", asked.conversation_id)
        if asked.conversation_id is None:
            seen = frozenset(named or ())
            for each in asked.conversation_ids:
                if each not in seen:
                    raise unseen("conversation", each)
            return Reach(self.scope, asked, size, 0, newest, newest=newest, cold=cold)
        bounds = [each for each in (newest, last, asked.to_seq) if each is not None]
        low, high = max(first or 1, asked.from_seq or 1) - 1, min(bounds)
        missing = {kind for kind, there in ((SUMMARIES.kind, has_summaries), (FILES.kind, has_files)) if not there}
        return Reach(
            self.scope,
            asked,
            newest,
            min(low, high),
            high,
            tuple(below),
            newest=newest,
            cold=cold,
            missing=frozenset(missing),
        )


@cache
def _row() -> OneRow[Conversation]:
    return OneRow.like(Conversation.objects.all())


@cache
def _statement(
    *,
    is_under: bool,
    is_one: bool,
    is_named: bool,
    is_owned: bool,
    told: str | None,
    is_lexed: bool,
    with_row: bool,
) -> str:
    """The words for a search of this shape: there are few shapes, so the server prepares them all."""
    owned = ["workspace_id = %(workspace_id)s"] if is_owned else []
    steps = []
    if is_under:
        steps.append(_UNDER.format(owned=IN_WORKSPACE if is_owned else "true"))
        extent, where = _ONE, ["conversation_id = (SELECT conversation_id FROM under)"]
    elif is_one:
        extent, where = _ONE, ["conversation_id = %(conversation_id)s", *owned]
    elif is_named:
        extent, where = _MANY, ["conversation_id = ANY(%(conversation_ids)s::bigint[])", *owned]
    else:
        extent, where = _MANY, owned
    named = "array_agg(conversation_id)" if is_named else "NULL::bigint[]"
    columns = _row().columns if with_row else ()
    steps.append(
        extent.format(
            where=" AND ".join(where) or "true", named=named, row="".join(f", {column}" for column in columns)
        )
    )
    return _OPENING.format(
        steps=", ".join([*steps, *([LEXED] if is_lexed else []), *([COUNTED] if told else [])]),
        imposed=IMPOSED,
        under=_OF_UNDER if is_under else _OF_NOTHING,
        row="".join(f", extent.{column}" for column in columns),
        told=f", {told}" if told else "",
        lexed=" LEFT JOIN lexed ON true" if is_lexed else "",
    )


def _is_askable(conversation_id: int) -> bool:
    # Whoever is not held to types may say it as a text.
    return -(2**63) <= int(conversation_id) < 2**63


def _within(asked: Criteria, conversation_id: int) -> Criteria:
    """The same in the conversation of the summary that was named, which is the only one it can be about."""
    if asked.named and conversation_id not in asked.named:
        raise wrong("under", "This summary is of another conversation than those that are to be searched.")
    return replace(asked, conversation_id=conversation_id, conversation_ids=())
