"""What is asked of a table for the rows that answer a plan best, each by its own words alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrieval.search.filters import Reach
from retrieval.search.query.compiled_query import MOST_CANDIDATES, InARow, Plan
from retrieval.search.relevance import ranking
from retrieval.search.searchables import MESSAGES, Table
from retrieval.search.tools import OF_TOOL

# What statistics do not foresee, no search looks at.
MOST_ROWS = 50_000
# Of messages with words so common that only the newest are looked at: of how many it is found out which have to do with
# a tool that is asked for.
MOST_PROMISING = 5000

# How rare a lexeme is comes from the candidates themselves, which are all the rows that have an anchor. Whatever is
# counted is materialized, as it would be counted anew for each row where few rows are foreseen.
_BEST = """
    WITH {matching} hits AS MATERIALIZED (
        SELECT id, conversation_id, seq, token_count, order_place, place, author, created_at, {shares}
        FROM ({holding}) AS holding
    ), rarities AS MATERIALIZED (
        SELECT looked_at, {rarities} FROM (SELECT count(*) AS looked_at, {counts} FROM hits) AS counts
    ), best AS (
        SELECT hits.*
        FROM hits, rarities
        ORDER BY ({worth}) / {length_cost} DESC, id DESC
        LIMIT {most}
    )
    SELECT {number}, {kind}, id::text, {one_place}, ARRAY[{share_columns}], token_count, {answered_in}, order_place,
           author, created_at, CASE WHEN id = (SELECT id FROM best LIMIT 1) THEN (
               SELECT ARRAY[looked_at, {rarity_columns}] FROM rarities
           ) END
    FROM best
"""
# A large tsvector is fetched and unpacked by each function that is given it: so all are given a copy, which the limit
# keeps from being made again for each. Whether words follow each other is found out only of texts that hold them all;
# hence the offset, without which ranks would be worked out twice.
_HOLDING = """
    SELECT *, {ranks}
    FROM (
        SELECT {id} AS id, conversation_id, {seq} AS seq, {tokens} AS token_count, {order_place} AS order_place,
               ctid AS place, {author} AS author, {created_at} AS created_at, {vector} AS vector
        FROM {table}
        WHERE {where} AND {sought}
        LIMIT %(most_rows)s
    ) AS found
    WHERE {answering}
    OFFSET 0
"""
# The newest of those that are picked, of which nobody foresees how many there are. Materialized, so that the index for
# words finds them: for the order, the planner would walk through all messages.
_MATCHING = """matching AS MATERIALIZED (
        SELECT ctid AS row, {order_place} AS order_place FROM {table} WHERE {where} AND {answering}
    ),"""
# To find out which tool a message has to do with takes longer than all else that is asked of it together.
_MATCHING_TOOLS = f"""promising AS MATERIALIZED (
        SELECT ctid AS row, {{order_place}} AS order_place
        FROM {{table}} WHERE {{where}} AND {{answering}}
        ORDER BY {{order_place}} DESC LIMIT %(most_promising)s
    ), matching AS MATERIALIZED (
        SELECT promising.row, promising.order_place
        FROM promising JOIN messages ON messages.ctid = promising.row WHERE {OF_TOOL}
    ),"""
_NEWEST = "ctid = ANY(ARRAY(SELECT row FROM matching ORDER BY order_place DESC LIMIT %(most_candidates)s))"
_COUNT = "greatest(count(*) FILTER (WHERE r{n} > 0), %(expected{n})s::float8) AS d{n}"
_RARITY = "{weight}::float8 * ln(1 + greatest(0, %(size)s::float8 - d{n} + 0.5::float8) / (d{n} + 0.5::float8)) AS w{n}"
_UNPACKED = "setweight({tsv}, 'A', %(lexemes)s::text[])"
# It saturates with the number of times: a message that says a lexeme twice holds 1.25 times as much as one that says it
# once. The rank of several forms is the mean of theirs.
_RANK = "ts_rank('{{1,1,1,1}}', vector, %(term{n})s::tsquery){forms} AS r{n}"
_FORMS = " * {0}::real"
# As much as of a word that is said once. As a real number like the others: to count and to sort thousands of exact ones
# takes as long as to rank them.
_SHARE_IN_A_ROW = "CASE WHEN {all_held} AND vector @@ %(term{n})s::tsquery THEN 0.6::real ELSE 0::real END AS r{n}"
# To look at the end of a text takes longer than to see that what follows it is no hit.
_BEFORE_A_HIT = "CASE WHEN (conversation_id, seq + 1) IN (SELECT conversation_id, seq FROM best) THEN {answered_in} END"


@dataclass(frozen=True)
class BestRows:
    """The rows within reach that answer a plan's query, the best of them by how much they hold of what is rare.

    `by_length`: whether length costs. `dated`: whether a message's date is told.
    """

    reach: Reach
    how: Plan
    by_length: bool
    dated: bool

    def statement(self, table: Table, *, number: int, kind: int, most: int) -> str:
        """The question for one table; its rows begin with these two numbers."""
        how = self.how
        terms, of_lexemes = range(len(how.terms)), range(len(how.lexemes))
        weights = [*(1 for _ in of_lexemes), *(each.weight for each in how.in_a_row)]
        in_a_row = [self._in_a_row(n, each) for n, each in enumerate(how.in_a_row, start=len(of_lexemes))]
        return _BEST.format(
            number=number,
            kind=kind,
            most=most,
            matching=self._matching(table),
            holding=self._holding(table),
            shares=", ".join([*(f"r{n}" for n in of_lexemes), *in_a_row]),
            counts=", ".join(_COUNT.format(n=n) for n in terms),
            rarities=", ".join(_RARITY.format(n=n, weight=weight) for n, weight in enumerate(weights)),
            rarity_columns=", ".join(f"w{n}" for n in terms),
            share_columns=", ".join(f"r{n}" for n in terms),
            worth=" + ".join(f"r{n} * w{n}" for n in terms),
            length_cost=ranking.LENGTH_COST_SQL if self.by_length else "1",
            one_place=ranking.PLACE_SQL,
            answered_in=self._answered_in(table),
        )

    def values(self) -> dict[str, Any]:
        """What the statements name; of several within one reach and of one plan, the same."""
        how, reach = self.how, self.reach
        after = reach.high - int(how.newest * (reach.high - reach.low))
        return {
            **reach.values,
            "query": how.query,
            **how.asked,
            "lexemes": list(how.lexemes),
            "size": float(reach.rows),
            "after": after,
            "in_newest": reach.between(after, reach.high) if how.newest < 1 and how.tells_place else None,
            "most_rows": MOST_ROWS,
            "most_candidates": MOST_CANDIDATES,
            "most_promising": MOST_PROMISING,
            **{f"term{n}": term for n, term in enumerate(how.terms)},
            **{f"expected{n}": how.expected_of(n) for n in range(len(how.terms))},
        }

    def _holding(self, table: Table) -> str:
        how = self.how
        return _HOLDING.format(
            id=table.id,
            seq=table.seq,
            table=table.name,
            tokens=table.tokens,
            order_place=self.reach.place(table),
            # Whose it is matters where the hits alone are ranked: of neighbours it is asked together with theirs.
            author="author" if table is MESSAGES else "NULL::text",
            created_at="created_at" if table is MESSAGES and self.dated else "NULL::timestamptz",
            vector=_UNPACKED.format(tsv=table.vector) if len(how.terms) > 1 else table.vector,
            where=self._where(table),
            sought=self.reach.sought(table, how, among=self._among(table)),
            # Of the copy, where there is one: what the index gives may be more than what answers.
            answering="true" if how.asks_for_all else "vector @@ %(query)s::tsquery",
            ranks=", ".join(self._rank(n, lexeme) for n, lexeme in enumerate(how.lexemes)),
        )

    def _rank(self, n: int, lexeme: str) -> str:
        forms = len(self.how.found_as(lexeme))
        return _RANK.format(n=n, forms=_FORMS.format(forms) if forms > 1 else "")

    def _in_a_row(self, n: int, words: InARow) -> str:
        held = (f"r{self.how.lexemes.index(lexeme)} > 0" for lexeme in words.lexemes)
        return _SHARE_IN_A_ROW.format(n=n, all_held=" AND ".join(held))

    def _takes_newest(self, table: Table) -> bool:
        """Whether the plan expects too many rows, and the newest are searched."""
        return table is MESSAGES and self.how.newest < 1

    def _among(self, table: Table) -> str | None:
        """By what the index for words tells where the rows stand, if it is asked for that; see `Reach.sought`."""
        if self._takes_newest(table):
            return "in_newest" if self.how.tells_place and not self.reach.picks_among_messages else None
        return "in_conversation" if self.how.in_conversation else None

    def _where(self, table: Table) -> str:
        reach, how = self.reach, self.how
        if not self._takes_newest(table):
            return reach.where(table, by_words_alone=how.by_words_alone)
        if reach.picks_among_messages:
            return _NEWEST
        newest = f"{reach.place(table)} > %(after)s"
        # As it is written, no other index serves it.
        newest = f"({newest}) IS TRUE" if how.tells_place else newest
        return f"{reach.where(table, by_words_alone=how.tells_place)} AND {newest}"

    def _matching(self, table: Table) -> str:
        """Where the newest cannot be told by their places, a step before the others that finds them."""
        reach = self.reach
        if not (self._takes_newest(table) and reach.picks_among_messages):
            return ""
        by_tools = bool(reach.criteria.tool_names) and reach.of_tools is None
        return (_MATCHING_TOOLS if by_tools else _MATCHING).format(
            order_place=reach.place(table),
            table=table.name,
            where=reach.where(table, but_tools=by_tools),
            answering=reach.answering(table, self.how),
        )

    def _answered_in(self, table: Table) -> str:
        """Where a hit that asks is answered: that says something about what stands beside it, and nothing else."""
        if not self.by_length or table is not MESSAGES:
            return "NULL::integer"
        is_told_of_all = self.how.takes_neighbours or self.how.is_sentence
        return table.answered_in if is_told_of_all else _BEFORE_A_HIT.format(answered_in=table.answered_in)
