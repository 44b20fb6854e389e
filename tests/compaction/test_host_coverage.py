"""What a host that compacts by itself is told after: whether all that it dropped can be had, and what cannot."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from compaction.hosts.host_service import MOST_GAPS
from compaction.params import CoverageParams
from compaction.types import CoverageGap, GapKind
from conversations.errors import Invalid
from conversations.models import Summary
from lcmsite.connections import closing_connections
from tests.compaction.hosting import a_talk, append, hosts
from tests.factories import a_conversation, a_store
from tests.integrity.breaking import breaking
from tests.summaries import a_summary_of


@pytest.mark.django_db
def test_every_message_up_to_the_boundary_is_counted_once():
    talk = a_talk(60)
    service = hosts(leaf_chunk_tokens=600)
    service.flush(conversation_id=talk.conversation_id, host_reference="compaction-7")
    for number in range(5):
        append(talk.conversation_id, f"after the boundary {number}")
    raw = a_store().get_conversation(conversation_id=talk.conversation_id).counters.active_messages

    covered = service.verify_coverage(conversation_id=talk.conversation_id, host_reference="compaction-7")
    whole = service.verify_coverage(conversation_id=talk.conversation_id)

    assert Summary.objects.filter(depth__gte=1).exists()
    assert (covered.last_seq, covered.stored, covered.raw, covered.summarized) == (60, 60, raw - 5, 65 - raw)
    assert (whole.last_seq, whole.stored, whole.raw, whole.summarized) == (65, 65, raw, 65 - raw)
    for report in (covered, whole):
        assert (report.missing, report.unreachable, report.gaps, report.gaps_left_out) == (0, 0, (), 0)
        assert report.is_complete


@pytest.fixture
def layered(db: None) -> tuple[int, list[str], str]:
    """A conversation of 40 messages: 2 to 25 below a condensed summary of four leaves, the rest raw."""
    a_summary_of(a_store(), a_talk(9).conversation_id, seqs=[1, 2, 3])
    number = a_talk(40).conversation_id
    leaves = [a_summary_of(a_store(), number, seqs=range(first, first + 6)) for first in (2, 8, 14, 20)]
    top = a_summary_of(a_store(), number, summaries=leaves)
    return number, [leaf.summary_id for leaf in leaves], top.summary_id


def gap(first_seq: int, last_seq: int, kind: str) -> CoverageGap:
    return CoverageGap(first_seq, last_seq, GapKind(kind))


ITEMS = "DELETE FROM context_items WHERE conversation_id = {id} AND ordinal IN (1, 30, 31, 40)"
ROWS = "DELETE FROM messages WHERE conversation_id = {id} AND seq IN (1, 5, 6, 7, 33, 39, 40)"
TOP = "DELETE FROM context_items WHERE summary_id = '{top}'"
ONE_ROW = "DELETE FROM messages WHERE conversation_id = {id} AND seq = 10"
SOURCE_LINK = "DELETE FROM summary_parents WHERE summary_id = '{top}' AND parent_summary_id = '{second}'"
MESSAGE_LINKS = (
    "DELETE FROM summary_messages WHERE summary_id = '{first}' AND message_id IN "
    "(SELECT message_id FROM messages WHERE conversation_id = {id} AND seq IN (3, 4))"
)
CIRCLE = "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES ('{first}', '{top}', 0)"
DAMAGE = {
    "rows that are gone": ([ROWS], [(1, 1, "missing"), (5, 7, "missing"), (33, 33, "missing"), (39, 40, "missing")],
                           (33, 7, 0, 21, 12)),
    "messages out of the context": ([ITEMS], [(1, 1, "unreachable"), (30, 31, "unreachable"), (40, 40, "unreachable")],
                                    (40, 0, 4, 24, 12)),
    "broken links": ([SOURCE_LINK, MESSAGE_LINKS], [(3, 4, "unreachable"), (8, 13, "unreachable")],
                     (40, 0, 8, 16, 16)),
    "a summary out of the context": ([TOP, ONE_ROW],
                                     [(2, 9, "unreachable"), (10, 10, "missing"), (11, 25, "unreachable")],
                                     (39, 1, 23, 0, 16)),
    "a lineage that runs in a circle": ([CIRCLE], [], (40, 0, 0, 24, 16)),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "gaps", "counts"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_lost_or_led_to_by_nothing_is_a_gap(layered, statements, gaps, counts):
    number, leaves, top = layered
    for statement in statements:
        breaking(statement.format(id=number, top=top, first=leaves[0], second=leaves[1]))

    covered = hosts().verify_coverage(conversation_id=number)

    assert covered.gaps == tuple(gap(*each) for each in gaps)
    found = (covered.stored, covered.missing, covered.unreachable, covered.summarized, covered.raw)
    assert (found, covered.is_complete) == (counts, not gaps)


def test_a_gap_behind_the_boundary_is_none_of_its(layered):
    number, _, _ = layered
    hosts().record_boundary(conversation_id=number, host_reference="before", last_seq=29)
    hosts().record_boundary(conversation_id=number, host_reference="in it", last_seq=30)
    breaking("DELETE FROM context_items WHERE conversation_id = %s AND ordinal IN (30, 31)", number)

    before = hosts().verify_coverage(conversation_id=number, host_reference="before")
    within = hosts().verify_coverage(conversation_id=number, host_reference="in it")

    assert (before.is_complete, before.stored) == (True, 29)
    assert within.gaps == (gap(30, 30, "unreachable"),)


@pytest.mark.django_db
def test_of_very_many_gaps_the_first_are_listed_and_all_are_counted():
    number = a_conversation(*(f"message {n}" for n in range(1, 301))).conversation_id
    breaking("DELETE FROM messages WHERE conversation_id = %s AND seq %% 2 = 0", number)

    covered = hosts().verify_coverage(conversation_id=number)

    assert len(covered.gaps) == MOST_GAPS
    assert covered.gaps[0] == gap(2, 2, "missing")
    assert covered.gaps[-1] == gap(200, 200, "missing")
    assert (covered.gaps_left_out, covered.missing, covered.stored, covered.raw) == (50, 150, 150, 150)


@pytest.mark.django_db
def test_keys_that_the_host_believes_to_be_archived_and_are_not_are_named():
    number = a_conversation().conversation_id
    other = a_conversation().conversation_id
    append(number, "here", idempotency_key="schlüssel 1")
    append(other, "elsewhere", idempotency_key="schlüssel 2")
    keys = ["schlüssel 3", "schlüssel 1", "schlüssel 2", "schlüssel 3"]

    partly = hosts().verify_coverage(conversation_id=number, idempotency_keys=keys)
    wholly = hosts().verify_coverage(conversation_id=number, idempotency_keys=["schlüssel 1"])

    assert partly.missing_keys == ("schlüssel 3", "schlüssel 2")
    assert (partly.is_complete, partly.gaps) == (False, ())
    assert (wholly.is_complete, wholly.missing_keys) == (True, ())


@pytest.mark.parametrize("keys", [["NUL \x00"], ["\ud800"], [""], ["x" * 501], ["k"] * 1001], ids=range(5))
def test_keys_that_no_message_could_have_are_refused(keys):
    with pytest.raises(Invalid, match="idempotency_key"):
        CoverageParams.accepted({"conversation_id": 1, "idempotency_keys": keys})


def test_coverage_beside_writers_and_a_compaction_is_complete_at_every_moment(committed_db):
    number, service = a_talk(30).conversation_id, hosts(leaf_chunk_tokens=600)

    def write() -> None:
        for n in range(30):
            append(number, f"meanwhile {n}")

    reports = []
    with ThreadPoolExecutor(2) as pool:
        compact = lambda: service.flush(conversation_id=number, host_reference="one")  # noqa: E731
        work = [pool.submit(closing_connections, each) for each in (write, compact)]
        while not all(each.done() for each in work):
            reports.append(service.verify_coverage(conversation_id=number))
        for each in work:
            each.result()

    assert [report for report in reports if not report.is_complete] == []
    assert len({report.last_seq for report in reports}) > 1
    last = service.verify_coverage(conversation_id=number)
    assert (last.is_complete, last.stored) == (True, 60)
