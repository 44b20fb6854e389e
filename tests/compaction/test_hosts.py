"""What a host that compacts by itself says before: its summaries are made, and its boundary is kept as it was said."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from compaction.models import CompactionBoundary, CompactionJob
from compaction.params import BoundaryParams, CoverageParams, FlushParams
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest
from compaction.types import BoundaryRecord, FlushResult, Outcome, Reason
from conversations.errors import Conflict, ConversationBusy, Invalid
from conversations.models import Summary
from conversations.types import NewMessage, Role
from integrity.checker import IntegrityChecker
from tests.compacting import another_session_compacts
from tests.compaction.hosting import a_talk, append, hosts
from tests.conversations.appending import at_once
from tests.factories import a_store, say

REFERENCES = ["compaction-7", "compactação n.º 7 · 圧縮 🗜", "e\u0301 is not \u00e9", " blanks stay ", "x" * 500]


@pytest.mark.django_db
def test_a_flush_makes_the_pending_summaries_and_records_the_boundary():
    talk = a_talk()

    flushed = hosts(leaf_chunk_tokens=1000).flush(
        conversation_id=talk.conversation_id, host_reference="compaction-7", metadata={"tokens": 90_000}
    )

    assert flushed.created
    assert flushed.boundary.last_seq == 40
    assert flushed.boundary.metadata == {"tokens": 90_000}
    assert flushed.compaction is not None
    assert (flushed.compaction.outcome, flushed.compaction.reason) == (Outcome.COMPACTED, Reason.MANUAL)
    assert flushed.compaction.leaf_summaries > 1
    assert a_store().get_conversation(conversation_id=talk.conversation_id).counters.active_messages <= 10


@pytest.mark.django_db
@pytest.mark.parametrize("overrides", [{}, {"fresh_tail_count": 12}])
# The messages are by the user and by the agent in turn: the newest question is before the cut, and after it.
@pytest.mark.parametrize("follow", [[], [Role.ASSISTANT], [Role.ASSISTANT] * 30, [Role.USER, Role.ASSISTANT]])
def test_a_flush_of_everything_summarizes_up_to_the_cut_and_nothing_after_it(overrides, follow):
    talk = a_talk()
    store = a_store()
    store.configure_conversation(conversation_id=talk.conversation_id, overrides=overrides)
    for number, role in enumerate(follow):
        say(talk.conversation_id, NewMessage(role, f"Later {number} about something else. " * 30))

    flushed = hosts().flush_all(conversation_id=talk.conversation_id, host_reference="cut", last_seq=40)

    coverage = hosts().verify_coverage(conversation_id=talk.conversation_id, host_reference="cut")
    assert (flushed.boundary.last_seq, coverage.summarized, coverage.raw) == (40, 40, 0)
    assert store.get_conversation(conversation_id=talk.conversation_id).counters.active_messages == len(follow)


@pytest.mark.django_db
def test_the_same_reference_again_gives_the_same_boundary_and_compacts_nothing():
    talk = a_talk()
    first = hosts().flush(conversation_id=talk.conversation_id, host_reference="compaction-7", metadata={"a": 1})
    say(talk.conversation_id, *(f"Later {number} about something else. " * 30 for number in range(20)))
    summaries = Summary.objects.count()

    again = hosts().flush(conversation_id=talk.conversation_id, host_reference="compaction-7")

    assert again == FlushResult(boundary=first.boundary, created=False)
    assert Summary.objects.count() == summaries


@pytest.mark.django_db
def test_metadata_said_again_as_they_were_said_do_not_differ():
    talk, service = a_talk(4), hosts()

    for metadata in ({"x": 1e23, "b": 0.1}, {"b": [1, {"é": None}], "a": ""}, {"n": 10**300}, {}):
        said = {"conversation_id": talk.conversation_id, "host_reference": str(metadata), "metadata": metadata}
        first, again = (service.flush(**said) for _ in range(2))
        assert again == FlushResult(boundary=first.boundary, created=False)


@pytest.mark.django_db
def test_where_compaction_is_disabled_the_boundary_is_recorded_all_the_same():
    talk = a_talk()

    flushed = hosts(enabled=False).flush(conversation_id=talk.conversation_id, host_reference="compaction-7")

    assert flushed.boundary.last_seq == 40
    assert flushed.compaction is not None
    assert flushed.compaction.outcome is Outcome.DISABLED


@pytest.mark.django_db
def test_what_a_bound_cuts_off_is_left_to_a_worker():
    talk = a_talk(80)

    flushed = hosts(leaf_chunk_tokens=1000, max_passes=1).flush(
        conversation_id=talk.conversation_id, host_reference="compaction-7"
    )

    assert flushed.compaction is not None
    assert flushed.compaction.outcome is Outcome.STOPPED
    assert flushed.job is not None
    assert CompactionJob.objects.get().reason == Reason.MANUAL
    assert flushed.boundary.last_seq == 80


@pytest.mark.django_db
def test_what_is_said_during_a_flush_lies_behind_its_boundary(monkeypatch):
    talk = a_talk()

    def interrupted(self: ExtractiveSummarizer, request: SummaryRequest) -> SummaryDraft:
        append(talk.conversation_id, "said while the summary was made")
        return SummaryDraft(text="", model=self.name)

    monkeypatch.setattr(ExtractiveSummarizer, "summarize", interrupted)

    flushed = hosts().flush(conversation_id=talk.conversation_id, host_reference="compaction-7")

    assert a_store().get_conversation(conversation_id=talk.conversation_id).counters.message_count > 40
    assert flushed.boundary.last_seq == 40


def test_a_flush_beside_another_compaction_is_busy_and_records_nothing(committed_db):
    talk = a_talk()
    service = hosts()

    with another_session_compacts(talk.conversation_id), pytest.raises(ConversationBusy) as busy:
        service.flush(conversation_id=talk.conversation_id, host_reference="compaction-7")
    recorded_while_busy = service.list_boundaries(conversation_id=talk.conversation_id)
    later = service.flush(conversation_id=talk.conversation_id, host_reference="compaction-7")

    assert busy.value.retryable
    assert recorded_while_busy == []
    assert later.created


@pytest.mark.parametrize("names", ["one for all", "one for each"])
def test_flushes_at_once_end_each_with_its_boundary_and_summarize_nothing_twice(committed_db, names):
    talk = a_talk(24)
    service = hosts(leaf_chunk_tokens=1000)

    def flush(worker: int) -> FlushResult:
        reference = "shared" if names == "one for all" else f"host {worker}"
        while True:
            try:
                return service.flush(conversation_id=talk.conversation_id, host_reference=reference)
            except ConversationBusy:
                time.sleep(0.02)

    flushed = at_once(flush, workers=4)

    boundaries = service.list_boundaries(conversation_id=talk.conversation_id)
    assert {each.boundary.host_reference for each in flushed} == {each.host_reference for each in boundaries}
    assert sum(each.created for each in flushed) == len(boundaries) == (1 if names == "one for all" else 4)
    assert all(each.boundary in boundaries for each in flushed)
    assert IntegrityChecker.from_settings().run(conversation_id=talk.conversation_id).is_clean


@pytest.mark.django_db
def test_a_boundary_lies_behind_the_newest_message_or_behind_the_one_that_is_said():
    talk = a_talk(12)
    service = hosts()

    newest = service.record_boundary(conversation_id=talk.conversation_id, host_reference="newest")
    earlier = service.record_boundary(conversation_id=talk.conversation_id, host_reference="earlier", last_seq=5)
    nothing = service.record_boundary(conversation_id=talk.conversation_id, host_reference="nothing", last_seq=0)

    assert [each.last_seq for each in (newest, earlier, nothing)] == [12, 5, 0]
    assert service.list_boundaries(conversation_id=talk.conversation_id) == [nothing, earlier, newest]
    assert service.list_boundaries(conversation_id=talk.conversation_id, limit=1) == [nothing]


@pytest.mark.django_db
def test_a_boundary_said_again_is_the_same_one_and_never_another():
    talk = a_talk(12)
    service = hosts()
    first = service.record_boundary(
        conversation_id=talk.conversation_id, host_reference="one", last_seq=5, metadata={"a": 1}
    )

    def again(**said: Any) -> BoundaryRecord:
        return service.record_boundary(conversation_id=talk.conversation_id, host_reference="one", **said)

    assert again() == again(last_seq=5) == again(metadata={"a": 1}) == first
    for wrong, said in {"last_seq": {"last_seq": 6}, "metadata": {"last_seq": 5, "metadata": {}}}.items():
        with pytest.raises(Conflict, match=wrong):
            again(**said)
    assert service.list_boundaries(conversation_id=talk.conversation_id) == [first]


@pytest.mark.django_db
def test_a_host_may_call_its_compactions_what_it_likes():
    talk, service = a_talk(12), hosts()

    for reference in REFERENCES:
        recorded = service.record_boundary(conversation_id=talk.conversation_id, host_reference=reference)
        flushed = service.flush(conversation_id=talk.conversation_id, host_reference=reference)
        covered = service.verify_coverage(conversation_id=talk.conversation_id, host_reference=reference)

        assert recorded.host_reference == covered.host_reference == reference
        assert flushed.boundary == recorded


@pytest.mark.parametrize("params", [FlushParams, BoundaryParams, CoverageParams])
def test_a_reference_that_could_not_be_kept_exactly_is_refused(params):
    for reference in ("", "NUL \x00", "half a character \ud800", "x" * 501):
        with pytest.raises(Invalid, match="host_reference"):
            params.accepted({"conversation_id": 1, "host_reference": reference})


@pytest.mark.django_db
def test_metadata_that_could_not_be_kept_are_refused_before_anything_is_done():
    talk = a_talk()

    for metadata in ({"a": "\x00"}, {"\ud800": 1}, {"a": math.nan}, {"a": math.inf}, {"a": object()}, {"a": 10**5000}):
        with pytest.raises(Invalid, match="metadata"):
            hosts().flush(conversation_id=talk.conversation_id, host_reference="one", metadata=metadata)

    assert not CompactionBoundary.objects.exists()
    assert not Summary.objects.exists()
