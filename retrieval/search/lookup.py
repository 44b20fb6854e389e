"""What full text search asks the database: the rows that hold what is looked for, and those beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, takewhile
from typing import Any

from conversations.reading import array, bound, rows, rows_as_planned
from retrieval.search import ranking
from retrieval.search.query import Question
from retrieval.search.query_plan import MOST_CANDIDATES, Plan
from retrieval.search.ranking import Hit, Neighbour, Place, conversation_of, seq_of
from retrieval.search.reach import Reach
from retrieval.search.tables import MESSAGES, Table
from retrieval.search.tools import OF_TOOL
from retrieval.search.trying import one_after_the_other

# What statistics do not foresee, no search looks at.
_MOST_ROWS = 50_000
# Of messages with words so common that only the newest are looked at: of how many it is found out which have to do with
# a tool that is asked for.
MOST_PROMISING = 5000

# A lexeme's ts_rank saturates with its number: a message that says it twice holds 1.25 times as much as one that says
# it once. How rare a lexeme is comes from the candidates themselves, which are all the rows that have an anchor. A
# large tsvector is fetched and unpacked by each function that is given it: so all are given a copy. Whatever is counted
# is materialized, as it would be counted anew for each row where few rows are foreseen. Whether words follow each
# other is found out only of texts that hold them all; hence the offset, without which ranks would be worked out twice.
_HITS = """
    WITH {matching} hits AS MATERIALIZED (
        SELECT id, conversation_id, seq, token_count, order_place, place, author, created_at, {shares}
        FROM (
            SELECT *, {lexeme_shares}
            FROM (
                SELECT * FROM (
                    SELECT {id} AS id, conversation_id, {seq} AS seq, {tokens} AS token_count,
                           {order_place} AS order_place, ctid AS place, {author} AS author,
                           {created_at} AS created_at, {vector} AS vector
                    FROM {table}
                    WHERE {where} AND {sought}
                    OFFSET 0
                ) AS sought
                WHERE {answering}
                LIMIT %(most_rows)s
            ) AS holding
            OFFSET 0
        ) AS shared
    ), counts AS MATERIALIZED (
        SELECT count(*) AS looked_at, {counts} FROM hits
    ), rarities AS MATERIALIZED (
        SELECT looked_at, {rarities} FROM counts
    ), best AS (
        SELECT hits.*, looked_at, ARRAY[{rarity_columns}] AS rarity
        FROM hits, rarities
        ORDER BY ({worth}) / {length_cost} DESC, id DESC
        LIMIT %(most)s
    )
    SELECT {number}, {kind}, id::text, {one_place}, ARRAY[{share_columns}], token_count, {answered_in}, order_place,
           author, created_at, CASE WHEN row_number() OVER () = 1 THEN rarity END, looked_at
    FROM best
"""
# The newest of those that are picked, of which nobody foresees how many there are. Materialized, so that the index for
# words finds them: for the order, the planner would walk through all messages.
_MATCHING = """matching AS MATERIALIZED (
        SELECT ctid AS row, {order_place} AS order_place FROM {table} WHERE {where} AND {tsv} @@ %(query)s::tsquery
    ),"""
# To find out which tool a message has to do with takes longer than all else that is asked of it together.
_MATCHING_TOOLS = f"""promising AS MATERIALIZED (
        SELECT ctid AS row, {{order_place}} AS order_place
        FROM {{table}} WHERE {{where}} AND {{tsv}} @@ %(query)s::tsquery
        ORDER BY {{order_place}} DESC LIMIT %(most_promising)s
    ), matching AS MATERIALIZED (
        SELECT promising.row, promising.order_place
        FROM promising JOIN messages ON messages.ctid = promising.row WHERE {OF_TOOL}
    ),"""
_NEWEST = "ctid = ANY(ARRAY(SELECT row FROM matching ORDER BY order_place DESC LIMIT %(most_candidates)s))"
_RARITY = "{weight}::float8 * ln(1 + greatest(0, %(size)s::float8 - d{n} + 0.5::float8) / (d{n} + 0.5::float8)) AS w{n}"
_UNPACKED = "setweight({tsv}, 'A', %(lexemes)s::text[])"
_SHARE = "ts_rank('{{1,1,1,1}}', vector, %(term{n})s::tsquery){forms} AS r{n}"
# The rank of several forms is the mean of theirs.
_FORMS = " * {0}::real"
# As much as of a word that is said once. As a real number like the others: to count and to sort thousands of exact ones
# takes as long as to rank them.
_SHARE_IN_A_ROW = "CASE WHEN {all_held} AND vector @@ %(term{n})s::tsquery THEN 0.6::real ELSE 0::real END AS r{n}"
# To look at the end of a text takes longer than to see that what follows it is no hit.
_BEFORE_A_HIT = "CASE WHEN (conversation_id, seq + 1) IN (SELECT conversation_id, seq FROM best) THEN {answered_in} END"
_NEIGHBOURS = """
    SELECT message_id, conversation_id, seq, {created_at}, author, {tells_when}
    FROM unnest(%(conversations)s::bigint[], %(seqs)s::bigint[]) AS near(conversation_id, seq)
         JOIN messages USING (conversation_id, seq)
    WHERE {where}
"""
# Whether a message tells a time, by the lexemes of such words. A long text has one of them by chance.
_TELLS_WHEN = """(octet_length(content) < 2000 AND content_tsv @@ '
    ago | yesterday | today | tonight | tomorrow | last | next | night | morn | week | weekend | month | year
    | monday | tuesday | wednesday | thursday | friday | saturday | sunday
    | januari | februari | march | april | june | juli | august | septemb | octob | novemb | decemb
    '::tsquery) IS TRUE"""


@dataclass(frozen=True)
class Try:
    """One way to look a question up; if it gives fewer hits than `enough`, there may be another.

    `by_length`: whether length costs.
    """

    question: Question
    how: Plan
    enough: int

    @property
    def by_length(self) -> bool:
        return not self.question.is_look_up


@dataclass(frozen=True)
class Looked:
    """The best hits of a table by themselves, how rare each lexeme is, and whether there were too many to look at.

    `present`: what the hits hold of what is looked for.
    """

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    present: frozenset[int] = frozenset()
    is_cut: bool = False


@dataclass(frozen=True)
class Lookup:
    """The rows within reach."""

    reach: Reach

    def tried(self, tries: Sequence[Try], *, most: int, dated: bool) -> list[tuple[Looked, ...]]:
        """What each try came to, table by table, up to the first that gave enough: in three statements at most.

        Of the hits, the best by their own words; of messages the date, if `dated`.
        """
        looked: list[tuple[Looked, ...]] = []
        for at_once in self._at_once(tries):
            looked += self._looked(at_once, most=most, dated=dated)
            vain = list(takewhile(lambda each: not _is_enough(*each), zip(looked, tries, strict=False)))
            if len(vain) < len(looked):
                break
        return looked[: len(vain) + 1]

    def _at_once(self, tries: Sequence[Try]) -> Iterator[Sequence[Try]]:
        """The first way by itself, the others together: to plan them takes longest, so a plain second comes before."""
        alone = 2 if len(tries) > 1 and self._is_plain(tries[1].how) else 1
        yield from ([each] for each in tries[:alone])
        if len(tries) > alone:
            yield tries[alone:]

    def _looked(self, tries: Sequence[Try], *, most: int, dated: bool) -> list[tuple[Looked, ...]]:
        asked = [self._statements(number, each, most=most, dated=dated) for number, each in enumerate(tries)]
        if len(tries) == 1 and self._is_plain(tries[0].how):
            # Of one plan within one reach, equal names stand for equal values.
            statement = " UNION ALL ".join(f"({of_table})" for of_table, _ in asked[0])
            given = rows(statement, dict(chain.from_iterable(values.items() for _, values in asked[0])))
        else:
            # Planned for these values: how often the words occur decides the plan.
            texts = [" UNION ALL ".join(f"({bound(*of_table)})" for of_table in each) for each in asked]
            given = rows_as_planned(one_after_the_other(texts, [each.enough for each in tries]))
        found: dict[tuple[int, int], list[tuple[Any, ...]]] = defaultdict(list)
        for row in given:
            found[row[0], row[1]].append(row)
        return [
            tuple(self._of(table, found[number, kind], each) for kind, table in enumerate(self.reach.tables))
            for number, each in enumerate(tries)
        ]

    def _is_plain(self, how: Plan) -> bool:
        """Whether only the index for words leads to what is asked for, whatever the words are."""
        is_by_words = how.by_words_alone and how.newest >= 1
        return is_by_words and self.reach.is_all_said_in_one_conversation and how.index.is_settled

    def _of(self, table: Table, fetched: Sequence[tuple[Any, ...]], tried: Try) -> Looked:
        if not fetched:
            return Looked((), (ranking.rarity(found=0, among=self.reach.rows),) * len(tried.how.terms))
        hits, present = _hits(fetched, tried.how, is_message=table is MESSAGES)
        rarity, looked_at = fetched[0][-2:]
        return Looked(hits, tuple(rarity), present, is_cut=looked_at >= _MOST_ROWS)

    def _statements(self, number: int, tried: Try, *, most: int, dated: bool) -> list[tuple[str, dict[str, Any]]]:
        """For each table, which rows answer the plan's query, the best of them; and the values of these statements."""
        return [
            self._of_table(table, tried, most=most, dated=dated, number=number, kind=kind)
            for kind, table in enumerate(self.reach.tables)
        ]

    def _of_table(
        self, table: Table, tried: Try, *, most: int, dated: bool, **names: int
    ) -> tuple[str, dict[str, Any]]:
        how, terms, by_length = tried.how, tried.how.terms, tried.by_length
        places, of_lexemes = range(len(terms)), range(len(how.lexemes))
        in_a_row = [
            _SHARE_IN_A_ROW.format(
                n=n, all_held=" AND ".join(f"r{how.lexemes.index(lexeme)} > 0" for lexeme in each.lexemes)
            )
            for n, each in enumerate(how.in_a_row, start=len(of_lexemes))
        ]
        weights = [*(1 for _ in of_lexemes), *(each.weight for each in how.in_a_row)]
        where, values, matching = self._where(table, how)
        statement = _HITS.format(
            **names,
            one_place=ranking.PLACE_SQL,
            id=table.id,
            seq=table.seq,
            table=table.name,
            tokens=table.tokens,
            order_place=self.reach.place(table),
            where=where,
            sought=table.sought,
            # Of the copy, where there is one: what the index gives may be more than what answers.
            answering="true" if how.sought == how.query else "vector @@ %(query)s::tsquery",
            matching=matching,
            answered_in=_answered_in(table, tried),
            # Whose it is matters where the hits alone are ranked: of neighbours it is asked together with theirs.
            author="author" if table is MESSAGES else "NULL::text",
            created_at="created_at" if table is MESSAGES and dated else "NULL::timestamptz",
            vector=_UNPACKED.format(tsv=table.vector) if len(terms) > 1 else table.vector,
            lexeme_shares=", ".join(
                _SHARE.format(n=n, forms=_FORMS.format(len(found_as)) if len(found_as) > 1 else "")
                for n, found_as in enumerate(map(how.found_as, how.lexemes))
            ),
            shares=", ".join([*(f"r{n}" for n in of_lexemes), *in_a_row]),
            counts=", ".join(
                f"greatest(count(*) FILTER (WHERE r{n} > 0), %(expected{n})s::float8) AS d{n}" for n in places
            ),
            rarities=", ".join(_RARITY.format(n=n, weight=weight) for n, weight in enumerate(weights)),
            rarity_columns=", ".join(f"w{n}" for n in places),
            share_columns=", ".join(f"r{n}" for n in places),
            worth=" + ".join(f"r{n} * w{n}" for n in places),
            length_cost=ranking.LENGTH_COST_SQL if by_length else "1",
        )
        size = float(self.reach.rows)
        values |= {"query": how.query, "sought": how.sought, "lexemes": list(how.lexemes), "size": size}
        values |= {"most": most, "most_rows": _MOST_ROWS, "most_candidates": MOST_CANDIDATES}
        values |= {"most_promising": MOST_PROMISING}
        values |= {f"term{n}": term for n, term in enumerate(terms)}
        values |= {f"expected{n}": how.expected_of(n) for n in places}
        return statement, values

    def neighbours(self, places: Collection[Place], *, dated: bool, asks_when: bool) -> list[Neighbour]:
        """The messages at these places, if they are within reach; some places are beyond a conversation's end.

        The date of each, if `dated`, and if it `asks_when`, whether they tell a time.
        """
        if not places:
            return []
        reach = self.reach
        statement = _NEIGHBOURS.format(
            where=reach.where(MESSAGES) if reach.is_narrowed else "true",
            # Thousands of dates take a while to read.
            created_at="created_at" if dated else "NULL",
            tells_when=_TELLS_WHEN if asks_when else "false",
        )
        near = {"conversations": array(map(conversation_of, places)), "seqs": array(map(seq_of, places))}
        return [Neighbour(*row) for row in rows(statement, {**reach.values, **near} if reach.is_narrowed else near)]

    def _where(self, table: Table, how: Plan) -> tuple[str, dict[str, Any], str]:
        """The condition for the rows to search, for the newest if the plan expects too many; what comes before it."""
        reach = self.reach
        values = dict(reach.values)
        if how.newest >= 1 or table is not MESSAGES:
            return reach.where(table, by_words_alone=how.by_words_alone), values, ""
        if reach.picks_among_messages:
            place = reach.place(table)
            by_tools = bool(reach.criteria.tool_names) and reach.of_tools is None
            matching = (_MATCHING_TOOLS if by_tools else _MATCHING).format(
                order_place=place, table=table.name, where=reach.where(table, but_tools=by_tools), tsv=table.vector
            )
            return _NEWEST, values, matching
        condition = reach.where(table)
        values["after"] = reach.high - int(how.newest * (reach.high - reach.low))
        return f"{condition} AND {reach.place(table)} > %(after)s", values, ""


def _answered_in(table: Table, tried: Try) -> str:
    """Where a hit that asks is answered: that says something about what stands beside it, and about nothing else."""
    if not tried.by_length:
        return "NULL::integer"
    how, answered_in = tried.how, table.answered_in
    return answered_in if how.takes_neighbours or how.is_sentence else _BEFORE_A_HIT.format(answered_in=answered_in)


def _is_enough(looked: Sequence[Looked], tried: Try) -> bool:
    return sum(len(each.hits) for each in looked) >= tried.enough


def _hits(fetched: Sequence[tuple[Any, ...]], how: Plan, *, is_message: bool) -> tuple[tuple[Hit, ...], frozenset[int]]:
    """The hits, and all that they hold."""
    # Hundreds of rows hold the same few combinations of words.
    combinations: dict[tuple[bool, ...], tuple[tuple[int, ...], bool]] = {}
    hits = []
    for _, _, id, place, held, tokens, answered_in, order_place, author, created_at, _, _ in fetched:
        combination = tuple(map(bool, held))
        if combination not in combinations:
            terms = tuple(compress(range(len(held)), held))
            combinations[combination] = terms, how.is_answered_by(terms)
        terms, is_complete = combinations[combination]
        shares = dict(zip(terms, compress(held, held), strict=True))
        own_id = int(id) if is_message else id
        hits.append(Hit(own_id, place, shares, tokens, answered_in, is_complete, order_place, author, created_at))
    return tuple(hits), frozenset(chain.from_iterable(terms for terms, _ in combinations.values()))
