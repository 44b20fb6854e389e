"""What a context is made of, slot by slot, and what a look at it tells: the stored one's in `stored_context`, that of a
past moment's in `past`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, Protocol

from compaction.planner import MAX_ATOM_MESSAGES
from conversations.records import ROLES
from conversations.types import Counters, Role
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.types import Moment

by_ordinal = attrgetter("ordinal")
# As the class itself does it, without the call, and looked up once: a context has a thousand slots.
_new, _USER = tuple.__new__, Role.USER

# For how many of the messages that answer a query, and call a tool or answer a call, the rest of that exchange is
# looked up. None has more messages than this, so nothing of it can lie farther away.
EXCHANGES = 12
REACH = MAX_ATOM_MESSAGES

# Rows of many kinds are rows of one statement, and each says `what` it is: slots of the context; what must be shown
# from `before` them; messages that are `sought`, and those `near` some of them; the summary that stands for a message
# (`above`); who said which messages (`role`) and what one is made of (`part`); what is `withheld`; how many summaries
# there are. The columns: what, ordinal, tokens, message, summary, last seq, what is said of it, and its call or role.
# Of a message that the context does not show itself it is said that it is `recalled`.
#
# What the messages that are `named` are made of, and which tool calls they make or answer. All of them at once: to look
# up each where it is found takes four times as long.
PARTS = """
    SELECT 'part', NULL::bigint, NULL::integer, message_id, NULL::text, NULL::bigint, part_type::text, tool_call_id
    FROM message_parts
    WHERE message_id = ANY(ARRAY(SELECT message_id FROM named)) AND part_type IN ('tool', 'text', 'file')
"""
# The messages in some stretches of a conversation; what is `said` of them is for the context to say. Each stretch is
# looked up (hence the offset): in a join, the planner would go through the whole conversation.
AROUND = f"""
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS given(first_seq, last_seq)
    ), named AS MATERIALIZED (
        SELECT near.seq, near.token_count, near.message_id, near.role
        FROM given, LATERAL (
            SELECT m.seq, m.token_count + %(overhead)s AS token_count, m.message_id, m.role
            FROM messages m
            WHERE m.conversation_id = %(id)s AND m.seq BETWEEN given.first_seq AND given.last_seq
            OFFSET 0
        ) AS near
    )
    SELECT 'near', seq, token_count, message_id, NULL::text, seq, {{said}}, role::text FROM named
    UNION ALL
    {PARTS}
"""
# A message is withheld with any of its parts.
WITHHELD = """
    SELECT 'withheld', NULL::bigint, NULL::integer, NULL::bigint, NULL::text, NULL::bigint,
           coalesce('msg_' || p.message_id, q.target), NULL
    FROM quarantines q LEFT JOIN message_parts p ON p.part_id = q.target
    WHERE q.conversation_id = %(id)s AND q.released_at IS NULL
"""


class Sought(NamedTuple):
    """A message that answers a query; those that stand beside one that answers it better have its number."""

    message_id: int
    beside: int


@dataclass(frozen=True)
class Look:
    """What one look at a context tells: slots, in order, and what is asked of the whole of it beside them."""

    slots: list[Candidate]
    # System messages before these slots, and the newest question of the whole context.
    before: list[Candidate] = field(default_factory=list)
    # The messages that were sought, and the summaries of the context that stand for them, each with the message.
    sought: list[Candidate] = field(default_factory=list)
    standing_for: list[tuple[Candidate, int]] = field(default_factory=list)
    # All that is around some of them, the places of which were `looked_around`.
    near: list[Candidate] = field(default_factory=list)
    looked_around: frozenset[int] = frozenset()
    withheld: frozenset[str] = frozenset()
    summaries: int = 0


class ContextSlots(Protocol):
    """A context that can be read from its newest end."""

    @property
    def counters(self) -> Counters: ...

    @property
    def moment(self) -> Moment | None:
        """Whose context it is; None for the present."""

    def look(self, *, before: int, size: int, tokens: int, margin: int, is_all: bool) -> Look:
        """At most `size` slots, the newest before an ordinal: those that the tokens reach, and a margin behind them.

        Where these are all there is, nothing is asked of what comes before them.
        """

    def around(self, windows: Iterable[tuple[int, int]]) -> list[Candidate]:
        """The messages between these seqs, in order, those marked that the context does not show itself."""


def look_in(found: Sequence[tuple[Any, ...]]) -> Look:
    """What these rows of eight columns tell."""
    of_kind: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for what, its_rows in groupby(found, key=itemgetter(0)):
        of_kind[what] += its_rows
    roles = {row[3]: ROLES[row[7]] for what in ("slot", "before", "sought", "near") for row in of_kind[what] if row[7]}
    for row in of_kind["role"]:
        roles.update(dict.fromkeys(map(int, row[7].split(",")), ROLES[row[6]]))
    calls: dict[int, tuple[str, ...]] = {}
    tools: set[int] = set()
    words: set[int] = set()
    for _, _, _, message_id, _, _, part_type, call in of_kind["part"]:
        if part_type != "tool":
            words.add(message_id)
            continue
        tools.add(message_id)
        if call is not None:
            calls[message_id] = (*calls.get(message_id, ()), call)
    answers = {message_id for message_id in tools - words if roles[message_id] is _USER}

    def made(what: str) -> list[Candidate]:
        return [
            _new(
                Candidate,
                (
                    ordinal,
                    tokens,
                    message_id,
                    summary_id,
                    roles.get(message_id),
                    None,
                    calls.get(message_id, ()),
                    message_id in answers,
                    last_seq,
                    said == "recalled",
                ),
            )
            for _, ordinal, tokens, message_id, summary_id, last_seq, said, _ in of_kind[what]
        ]

    return Look(
        slots=sorted(made("slot"), key=by_ordinal),
        before=made("before"),
        sought=made("sought"),
        standing_for=[
            (Candidate(ordinal=row[1], tokens=row[2], summary_id=row[4], last_seq=row[5]), row[3])
            for row in of_kind["above"]
        ],
        near=sorted(made("near"), key=by_ordinal),
        looked_around=frozenset(row[1] for row in of_kind["around"]),
        withheld=frozenset(row[6] for row in of_kind["withheld"]),
        summaries=sum(row[1] for row in of_kind["summaries"]),
    )
