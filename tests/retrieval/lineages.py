"""A lineage for tests that read one, and a reader for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from conversations.content.tokens import TokenEstimator
from conversations.scope import Scope
from conversations.types import SummaryRecord
from retrieval.describing.ranges import RangeExpansion
from retrieval.engine import RetrievalEngine
from retrieval.policy import RetrievalPolicy
from retrieval.types import ItemKind
from tests.factories import a_conversation, a_store, a_workspace
from tests.summaries import a_summary_of


class Graph(NamedTuple):
    """Messages 1 to 8 below `middle` (two leaves and message 3) and `third`; those after them are raw."""

    number: int
    first: SummaryRecord
    second: SummaryRecord
    middle: SummaryRecord
    third: SummaryRecord


def a_graph(messages: int = 9) -> Graph:
    number = a_conversation(*(f"message {seq} " * 5 for seq in range(1, messages + 1))).conversation_id
    store = a_store()
    first = a_summary_of(store, number, seqs=[1, 2, 4])
    second = a_summary_of(store, number, seqs=[5, 6])
    middle = a_summary_of(store, number, seqs=[3], summaries=[first, second])
    third = a_summary_of(store, number, seqs=[7, 8])
    return Graph(number, first, second, middle, third)


def a_root_of(graph: Graph) -> SummaryRecord:
    """A summary of `middle` and `third`."""
    return a_summary_of(a_store(), graph.number, summaries=[graph.middle, graph.third])


def engine(**policy: int) -> RetrievalEngine:
    return RetrievalEngine(
        policy=RetrievalPolicy(**policy), tokens=TokenEstimator.from_settings(), scope=Scope(a_workspace().pk)
    )


def message_id(number: int, seq: int) -> str:
    return a_store().list_messages(conversation_id=number, after_seq=seq - 1, limit=1)[0].id


def pages(ask: Callable[..., Any], *, cursor: str | None = None, **asked: Any) -> list[Any]:
    """The pages of an expansion, from the cursor on to the last."""
    found = [ask(**asked, cursor=cursor)]
    while found[-1].cursor is not None:
        found.append(ask(**asked, cursor=found[-1].cursor))
    return found


def range_pages(number: int, from_seq: int, to_seq: int, **options: Any) -> list[RangeExpansion]:
    return pages(engine().expand_range, conversation_id=number, from_seq=from_seq, to_seq=to_seq, **options)


def told(results: Sequence[RangeExpansion]) -> list[str | int]:
    """What these pages show: the ids of summaries and the seqs of messages."""
    items = [item for result in results for item in result.items]
    return [item.id if item.kind is ItemKind.SUMMARY else item.first_seq for item in items]
