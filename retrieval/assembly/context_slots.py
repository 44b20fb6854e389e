"""What a context is made of, slot by slot, and what a look at it tells: the stored one's in `stored_context`, that of a
past moment's in `past`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from compaction.planning.planner import MAX_ATOM_MESSAGES
from conversations.store.read import ROLES
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

# What is told of a context is rows of one statement, each of which says `what` it tells of, in columns of arrays: there
# may be a thousand slots, and a row for each would take longer to read than what is in it. The columns: what, ordinals,
# tokens, messages, summaries, last seqs, and whether they are recalled, for the context does not show them itself.
#
# It tells of slots of the context, `raw` ones and `summary` ones; of what must be shown from `before` them; of messages
# that are `sought`, and those `near` some of them, the places of which are looked `around`; of the summary that stands
# for a message (`above`); of what is `withheld`, and how many `summaries` there are.
#
# Of the messages that are `named` it tells in what role each was `said`, and what is `made` of parts: those that have a
# tool part, with its call, and instead of last seqs those that have words. All parts at once: to look up each where it
# is found takes four times as long.
NAMED = """
    SELECT 'said', NULL::bigint[], NULL::integer[], array_agg(message_id), array_agg(role::text), NULL::bigint[],
           NULL::boolean[]
    FROM named
    UNION ALL
    SELECT 'made', NULL, NULL, array_agg(message_id) FILTER (WHERE part_type = 'tool'),
           array_agg(tool_call_id) FILTER (WHERE part_type = 'tool'),
           array_agg(message_id) FILTER (WHERE part_type <> 'tool'), NULL
    FROM message_parts
    WHERE message_id = ANY(ARRAY(SELECT message_id FROM named)) AND part_type IN ('tool', 'text', 'file')
"""
# The messages in some stretches of a conversation; whether they are `recalled` is for the context to say. Each stretch
# is looked up (hence the offset): in a join, the planner would go through the whole conversation.
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
    SELECT 'near', array_agg(seq), array_agg(token_count), array_agg(message_id), NULL::text[], NULL::bigint[],
           {{recalled}}
    FROM named
    UNION ALL
    {NAMED}
"""
# A message is withheld with any of its parts.
WITHHELD = """
    SELECT 'withheld', NULL::bigint[], NULL::integer[], NULL::bigint[],
           array_agg(coalesce('msg_' || p.message_id, q.target)), NULL::bigint[], NULL::boolean[]
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


_NOTHING: Sequence[Sequence[Any]] = ((),) * 6


def look_in(found: Iterable[Sequence[Any]]) -> Look:
    """What these rows of seven columns tell."""
    # Of nothing, the server makes no array.
    rows = {what: [column or () for column in columns] for what, *columns in found}
    told = defaultdict(lambda: _NOTHING, rows)
    _, _, said, roles_said, _, _ = told["said"]
    roles = {message_id: ROLES[role] for message_id, role in zip(said, roles_said, strict=True)}
    _, _, tools, call_ids, words, _ = told["made"]
    calls: dict[int, tuple[str, ...]] = {}
    for message_id, call_id in zip(tools, call_ids, strict=True):
        if call_id is not None:
            calls[message_id] = (*calls.get(message_id, ()), call_id)
    answers = {message_id for message_id in set(tools).difference(words) if roles[message_id] is _USER}

    def messages(what: str) -> list[Candidate]:
        ordinals, tokens, ids, _, _, recalled = told[what]
        return [
            _new(
                Candidate,
                (ordinal, cost, id, None, roles[id], calls.get(id, ()), id in answers, ordinal, is_recalled),
            )
            for ordinal, cost, id, is_recalled in zip(
                ordinals, tokens, ids, recalled or [False] * len(ids), strict=True
            )
        ]

    def summaries(what: str) -> list[Candidate]:
        ordinals, tokens, _, ids, last_seqs, _ = told[what]
        return [
            _new(Candidate, (ordinal, cost, None, id, None, (), False, last_seq, False))
            for ordinal, cost, id, last_seq in zip(ordinals, tokens, ids, last_seqs, strict=True)
        ]

    return Look(
        slots=sorted(messages("raw") + summaries("summary"), key=by_ordinal),
        before=messages("before"),
        sought=messages("sought"),
        standing_for=list(zip(summaries("above"), told["above"][2], strict=True)),
        near=sorted(messages("near"), key=by_ordinal),
        looked_around=frozenset(told["around"][0]),
        withheld=frozenset(told["withheld"][3]),
        summaries=sum(told["summaries"][0]),
    )
