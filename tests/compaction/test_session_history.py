"""Sessions become session summaries, these arcs, these epochs; and what changes below is taken over above."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db import DatabaseError, transaction
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from compaction.engine import CompactionEngine
from compaction.history.history_maker import VERBATIM
from compaction.history.history_worker import HistoryWorker
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import SessionHistory
from compaction.history.types import HistoryKind, HistoryReason
from compaction.llm.types import Unreachable
from compaction.rendering import WITHHELD
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.summarizing.prompts import render_prompt
from compaction.types import JobState
from conversations.errors import Conflict, Invalid
from conversations.models import Conversation, Message, Quarantine, SummaryMessage, SummaryParent
from conversations.types import Level
from integrity.repairs.quarantines import Quarantines
from tests.compaction.model_settings import Model, asking_only
from tests.factories import a_conversation, a_store
from tests.histories import a_session, current, go_on, members, summarize, work_off
from tests.integrity.breaking import checked

pytestmark = pytest.mark.django_db

SMALL = {"sessions_per_arc": 2, "arcs_per_epoch": 2}


def with_a_model(model: Model) -> SessionHistory:
    return asking_only(model, SessionHistory.from_settings())


def quiet(*conversations) -> None:
    an_hour_ago = timezone.now() - timedelta(hours=1)
    found = Conversation.objects.filter(pk__in=[each.conversation_id for each in conversations])
    found.update(updated_at=an_hour_ago)
    HistoryJob.objects.update(finished_at=an_hour_ago - timedelta(hours=1))


def reached(summary: SessionSummary) -> list[int]:
    """The ids of all messages below a summary, by way of its lineage alone."""
    if summary.depth:
        return [message_id for member in members(summary) for message_id in reached(member)]
    found: list[int] = []
    below = []
    for link in summary.memory_links.order_by("ordinal"):
        if link.message_id:
            found.append(link.message_id)
        else:
            below.append(link.memory_summary_id)
    while below:
        summary_id = below.pop()
        found += SummaryMessage.objects.filter(summary_id=summary_id).values_list("message_id", flat=True)
        below += SummaryParent.objects.filter(summary_id=summary_id).values_list("source_id", flat=True)
    return sorted(found)


def test_eight_sessions_become_an_arc():
    summarize(a_session(number, length=2) for number in range(7))
    assert [len(current(depth)) for depth in (0, 1)] == [7, 0]

    summarize([a_session(7, length=2)])

    [arc] = current(1)
    assert [each.pk for each in members(arc)] == [each.pk for each in current(0)]


def test_four_arcs_become_an_epoch(settings):
    settings.LCM = {"sessions_per_arc": 2}

    summarize(a_session(number, length=2) for number in range(8))

    assert [len(current(depth)) for depth in (0, 1, 2)] == [8, 4, 1]
    [epoch] = current(2)
    assert [each.pk for each in members(epoch)] == [each.pk for each in current(1)]
    sessions = [session.conversation.session_id for arc in members(epoch) for session in members(arc)]
    assert sessions == [f"harbour-{number}" for number in range(8)]
    assert sorted(reached(epoch)) == sorted(Message.objects.values_list("pk", flat=True))
    assert checked() == {}


def test_a_conversation_may_have_a_factor_over_the_target_of_its_session_summary():
    twice_as_long = Model(write=lambda request: "word " * int(1.9 * request.target_tokens))
    own, other = a_session(1, length=40), a_session(2, length=40)
    a_store().configure_conversation(conversation_id=own.conversation_id, overrides={"target_factor": 2.0})

    for each in (own, other):
        with_a_model(twice_as_long).summarize_session(conversation_id=each.conversation_id)

    levels = SessionSummary.objects.order_by("conversation_id").values_list("level", flat=True)
    assert list(levels) == ["normal", "aggressive"]


def test_each_project_has_arcs_of_its_own(settings):
    settings.LCM = SMALL
    summarize([a_session(1, project="boats"), a_session(1, project="harbour"), a_session(1, project=None)])
    assert not current(1)

    summarize([a_session(2, project="boats")])

    [arc] = current(1)
    assert arc.project.name == "boats"
    assert all(session.project_id == arc.project_id for session in members(arc))


def test_a_session_that_goes_on_is_renewed_up_to_its_epoch(settings):
    settings.LCM = SMALL
    sessions = [a_session(number) for number in range(5)]
    summarize(sessions)
    before = {each.pk for depth in (0, 1, 2) for each in current(depth)}

    go_on(sessions[2])
    summarize([sessions[2]])

    now = {each.pk for depth in (0, 1, 2) for each in current(depth)}
    renewed = SessionSummary.objects.filter(supersedes__isnull=False).order_by("depth")
    assert [each.kind for each in renewed] == ["session", "arc", "epoch"]
    assert {each.supersedes_id for each in renewed} == before - now
    assert SessionSummary.objects.count() == 5 + 2 + 1 + 3
    [epoch] = current(2)
    assert Message.objects.get(conversation_id=sessions[2].conversation_id, seq=7).pk in reached(epoch)
    assert checked() == {}


def test_nothing_new_makes_nothing():
    session = a_session(1)
    first = SessionHistory.from_settings().summarize_session(conversation_id=session.conversation_id)
    second = SessionHistory.from_settings().summarize_session(conversation_id=session.conversation_id)

    assert (first.created, second.created) == (True, False)
    assert first.summary == second.summary


def test_a_session_summary_rests_on_the_summaries_of_its_conversation_and_not_on_their_messages(settings):
    settings.LCM = {"leaf_chunk_tokens": 300, "leaf_target_tokens": 64, "condensed_target_tokens": 200}
    session = a_session(1, length=40)
    CompactionEngine.from_settings().compact(conversation_id=session.conversation_id)
    model = Model()

    made = with_a_model(model).summarize_session(conversation_id=session.conversation_id).summary

    items = Conversation.objects.get().context_items.order_by("ordinal")
    ids = [item.summary_id or f"msg_{item.message_id}" for item in items]
    assert [source.source_id for source in model.requests[0].sources] == ids
    assert any(each.startswith("sum_") for each in ids)
    row = SessionSummary.objects.get(pk=made.summary_id)
    assert [link.memory_summary_id or f"msg_{link.message_id}" for link in row.memory_links.order_by("ordinal")] == ids
    assert reached(row) == list(Message.objects.order_by("seq").values_list("pk", flat=True))
    assert (made.first_seq, made.last_seq) == (1, 40)


def test_a_very_short_conversation_is_its_own_summary():
    conversation = a_conversation("hi", "hello")

    made = SessionHistory.from_settings().summarize_session(conversation_id=conversation.conversation_id).summary

    assert made.content == "user: hi\nassistant: hello"
    assert (made.model, made.level, made.confidence) == (VERBATIM, Level.DETERMINISTIC, 0.3)
    assert checked() == {}


def test_a_conversation_without_text_is_refused():
    with pytest.raises(Invalid) as refusal:
        SessionHistory.from_settings().summarize_session(conversation_id=a_conversation().conversation_id)
    assert refusal.value.code == "nothing_to_summarize"


def test_the_sweep_finds_conversations_that_are_quiet_and_have_something_new():
    first, second, loud = (a_session(number) for number in range(3))
    quiet(first, second)
    worker = HistoryWorker.from_settings()

    worker.sweep()
    worker.sweep()
    asked = {(job.conversation_id, job.reason) for job in HistoryJob.objects.all()}
    assert asked == {(each.conversation_id, "quiet") for each in (first, second)}
    work_off()
    assert {each.conversation_id for each in current(0)} == {first.conversation_id, second.conversation_id}

    quiet(first, second)
    worker.sweep()
    assert not HistoryJob.objects.filter(state=JobState.QUEUED).exists()
    go_on(first)
    quiet(first)
    worker.sweep()
    assert HistoryJob.objects.filter(state=JobState.QUEUED, conversation_id=first.conversation_id).exists()
    assert loud.conversation_id not in HistoryJob.objects.values_list("conversation_id", flat=True)


def test_after_the_clock_was_set_back_a_session_gets_its_summary_now_and_then():
    session, worker = a_session(1), HistoryWorker.from_settings()
    ahead = timezone.now() + timedelta(days=300)
    Conversation.objects.update(updated_at=ahead)

    def is_asked() -> bool:
        go_on(session)
        worker.sweep()
        asked = HistoryJob.objects.filter(state=JobState.QUEUED).exists()
        work_off()
        return asked

    assert [is_asked(), is_asked()] == [True, False]
    # It ended before the clock was set back.
    HistoryJob.objects.update(finished_at=ahead)
    assert is_asked()


def test_with_no_minutes_only_a_request_makes_a_summary(settings):
    settings.LCM = {"session_quiet_minutes": 0}
    quiet(a_session(1))

    HistoryWorker.from_settings().sweep()

    assert not HistoryJob.objects.exists()


def test_a_session_that_is_given_a_project_later_moves_there():
    session = a_session(1, project=None)
    summarize([session])
    a_store().open_conversation(session_id=session.session_id, project="harbour")
    quiet(session)

    HistoryWorker.from_settings().sweep()
    work_off()

    [made] = current(0)
    assert made.project.name == "harbour"
    assert made.supersedes.project is None


def test_each_depth_has_the_task_of_its_kind_and_the_words_of_the_specification(settings):
    settings.LCM = SMALL
    model = Model()
    history = with_a_model(model)
    for number in range(4):
        history.summarize_session(conversation_id=a_session(number).conversation_id)
    worker = HistoryWorker(history=history)
    while worker.work():
        pass

    prompts = {request.task: render_prompt(request).system for request in model.requests}
    assert "Preserve operational detail, commands, error messages, and specific decisions" in prompts["session"]
    assert "Preserve decisions and outcomes. Drop transient errors and command-level detail" in prompts["arc"]
    assert (
        "Preserve only architectural facts, major direction changes, and constraints that still apply"
        in (prompts["epoch"])
    )
    assert [each.level for each in current(2)] == [Level.NORMAL]
    assert {each.confidence for depth in (0, 1, 2) for each in current(depth)} == {0.7}
    assert (
        "| summary of session harbour-0]"
        in render_prompt(next(request for request in model.requests if request.task == HistoryKind.ARC)).user
    )


@pytest.mark.parametrize("failure", [Unreachable("away"), Rejected(Refusal.CHATTY)], ids=["away", "useless"])
def test_a_model_that_fails_never_keeps_a_session_from_its_summary(settings, failure):
    settings.LCM = SMALL
    model = Model(failure)
    history = with_a_model(model)
    sessions = [a_session(number) for number in range(2)]
    for session in sessions:
        history.summarize_session(conversation_id=session.conversation_id)
    HistoryWorker(history=history).work()

    assert {each.level for depth in (0, 1) for each in current(depth)} == {Level.DETERMINISTIC}
    assert all(each.is_degraded for depth in (0, 1) for each in current(depth))

    for model.failure in (failure, None):
        assert SessionSummary.objects.count() == 3
        for session in sessions:
            history.make_session(conversation_id=session.conversation_id, reason=HistoryReason.REDO)
    HistoryWorker(history=history).work()

    assert not any(each.is_degraded for depth in (0, 1) for each in current(depth))
    [arc] = current(1)
    assert [each.pk for each in members(arc)] == [each.pk for each in current(0)]
    assert checked() == {}


def test_what_is_quarantined_is_no_source_and_stays_reachable():
    session = a_session(1)
    message = Message.objects.get(seq=2)
    Quarantine.objects.create(conversation_id=session.conversation_id, target=f"msg_{message.pk}", reason="damaged")
    model = Model()

    made = with_a_model(model).summarize_session(conversation_id=session.conversation_id).summary

    assert f"msg_{message.pk}" not in [source.source_id for source in model.requests[0].sources]
    assert WITHHELD not in "".join(source.text for source in model.requests[0].sources)
    assert message.pk in reached(SessionSummary.objects.get(pk=made.summary_id))


@pytest.mark.parametrize("is_released", [False, True])
def test_nothing_is_written_of_what_was_quarantined_or_released_while_a_model_worked(is_released):
    session = a_session(1)
    message = Message.objects.get(seq=2)
    quarantines = Quarantines.from_settings()
    act = partial(quarantines.quarantine, id=f"msg_{message.pk}", reason="damaged")
    if is_released:
        act = partial(quarantines.release, quarantine_id=act().quarantine_id)

    with pytest.raises(Conflict) as refused:
        with_a_model(Model(meanwhile=act)).summarize_session(conversation_id=session.conversation_id)

    assert (refused.value.code, refused.value.retryable) == ("quarantines_changed", True)
    assert not SessionSummary.objects.exists()


def test_the_database_refuses_to_change_what_was_made(settings):
    settings.LCM = SMALL
    summarize(a_session(number) for number in range(2))

    for statement in (
        "UPDATE session_summaries SET content = 'another'",
        "UPDATE session_summaries SET is_degraded = true",
        "DELETE FROM session_summaries",
        "TRUNCATE session_summaries CASCADE",
        "UPDATE session_summary_memories SET ordinal = ordinal + 100",
        "DELETE FROM session_summary_memories",
        "DELETE FROM session_summary_children",
        "UPDATE session_summary_children SET ordinal = ordinal + 100",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), transaction.get_connection().cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(statement)


def test_the_database_refuses_a_summary_that_contradicts_itself():
    summarize([a_session(1)])
    made = SessionSummary.objects.filter(pk=current(0)[0].pk).values().get()
    other = {**made, "summary_id": "ses_other", "supersedes_id": made["summary_id"]}

    for change, constraint in (
        ({"kind": "arc"}, "have_the_depth_of_their_kind"),
        ({"depth": 1}, "cover_a_conversation_or_a_project"),
        ({"confidence": 0.5}, "have_the_confidence_of_their_level"),
        ({"first_seq": 0}, "cover_a_conversation_or_a_project"),
        ({"first_seq": None}, "cover_a_conversation_or_a_project"),
        ({"last_seq": None}, "cover_a_conversation_or_a_project"),
        ({"project_id": 10**9}, "share_the_workspace_of_their_project"),
        ({}, "ses_other links to no source"),
    ):
        with pytest.raises(DatabaseError, match=constraint), transaction.atomic():
            SessionSummary.objects.create(**{**other, **change})
            transaction.get_connection().check_constraints()


A_STEP = st.tuples(st.integers(0, 4), st.sampled_from(["go on", "summarize", "compact"]))
EXAMPLES = hypothesis_settings.default.max_examples // 5


@given(steps=st.lists(A_STEP, min_size=4, max_size=12))
@hypothesis_settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_happens_every_message_of_a_summarized_session_is_reached_exactly_once(steps):
    with transaction.atomic():
        with override_settings(
            LCM={**SMALL, "leaf_chunk_tokens": 300, "leaf_target_tokens": 64, "fresh_tail_count": 2}
        ):
            sessions = [a_session(number) for number in range(5)]
            for place, step in steps:
                if step == "go on":
                    go_on(sessions[place])
                elif step == "compact":
                    CompactionEngine.from_settings().compact(conversation_id=sessions[place].conversation_id)
                else:
                    summarize([sessions[place]])
            summarize(sessions)

            below = {arc.pk for epoch in current(2) for arc in members(epoch)}
            top = [each for each in (*current(2), *current(1)) if each.pk not in below]
            in_arcs = {session.pk for arc in current(1) for session in members(arc)}
            top += [each for each in current(0) if each.pk not in in_arcs]
            found = sorted(message_id for each in top for message_id in reached(each))
            assert found == sorted(Message.objects.values_list("pk", flat=True))
            assert checked() == {}
        transaction.set_rollback(True)
