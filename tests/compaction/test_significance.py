"""What is worth a summary, and what automatic compaction passes over."""

from __future__ import annotations

import pytest
import structlog
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from compaction.background.statistics import CompactionActivity
from compaction.engine import CompactionEngine
from compaction.models import CompactionJob, CompactionRun
from compaction.planning.significance import Significance, significance
from compaction.policy import CompactionPolicy
from compaction.types import Outcome, Reason
from conversations.scope import Scope
from retrieval.engine import RetrievalEngine
from tests.compaction.summarizing import any_text
from tests.factories import a_conversation, a_store, a_workspace, say

TALK = [
    "The harbour master wants the northern quay dredged before the autumn storms arrive.",
    "Dredging costs are shared between the fishing cooperative and the municipal budget.",
    "Invoice 4711 from Hansen Marine covers the survey of the seabed near pier seven.",
    "Survey vessels may anchor only beyond the breakwater during the regatta weekend.",
    "Regatta organisers asked whether spectators could watch from the customs building.",
]
# The same status, again and again.
STATUS = "Build 7 is still running, nothing else has changed since the last report of the build server. "


SMALL = {"max_active_messages": 20}
DEFAULTS = CompactionPolicy()


def figures_of(turns: list[str], *, summaries: list[str]) -> Significance:
    return significance(turns, summaries=summaries, substantive_words=DEFAULTS.substantive_words)


def test_a_talk_that_gets_on_is_significant():
    found = figures_of(TALK, summaries=[])

    assert found.substantive_turns == 5
    assert not found.is_below(DEFAULTS)


def test_courtesies_and_repetition_are_not():
    turns = ["ok", "thanks!", "yes, please do that", *[STATUS] * 50]

    found = figures_of(turns, summaries=[STATUS])

    assert found.substantive_turns <= 1
    assert found.is_below(DEFAULTS)


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        ([*TALK, STATUS], "turns of substance"),
        ([STATUS + "See src/a.py, src/b.py, src/c.py and src/d.py."], "names"),
        (["Quinces ripen slowly."], "novelty"),
    ],
)
def test_one_figure_that_is_not_low_is_enough(turns, why):
    assert not figures_of(turns, summaries=[STATUS, *TALK]).is_below(DEFAULTS), why


@given(st.lists(any_text, max_size=8), st.lists(any_text, max_size=5))
def test_the_figures_stay_in_their_bounds_on_any_text(turns, summaries):
    found = figures_of(turns, summaries=summaries)

    assert 0 <= found.novelty <= 1
    assert 0 <= found.substantive_turns <= found.turns == len(turns)


@pytest.fixture(scope="module")
def made_idle(module_rows):
    """A conversation that is full of the same, and has told it in a summary already."""
    with override_settings(LCM=SMALL):
        conversation = a_conversation(*[STATUS * 6] * 30)
        CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)
        say(conversation.conversation_id, *[STATUS * 6] * 30)
        CompactionJob.objects.all().delete()
        yield conversation.conversation_id


@pytest.fixture
def idle(made_idle, db, settings):
    settings.LCM = SMALL
    return made_idle


def under_pressure(conversation_id: int):
    return CompactionEngine.from_settings().compact(conversation_id=conversation_id, reason=Reason.THRESHOLD)


def test_automatic_compaction_passes_over_the_insignificant_and_records_the_figures(idle):
    result = under_pressure(idle)

    run = CompactionRun.objects.get(pk=result.run_id)
    assert result.outcome is Outcome.SKIPPED
    assert (result.tokens_after, run.outcome) == (result.tokens_before, Outcome.SKIPPED)
    assert run.details["significance"]["novelty"] < 0.1
    assert run.details["significance"]["substantive_turns"] <= 1
    # It rests until there is more.
    assert run.conversation.rest_until_seq > run.conversation.next_seq - 1


@pytest.mark.parametrize("change", [{"significance_gate": False}, {"model_token_budget": 4000}])
def test_without_the_gate_and_above_the_hard_threshold_it_is_compacted(idle, settings, change):
    settings.LCM = {**settings.LCM, **change}

    assert under_pressure(idle).outcome in (Outcome.COMPACTED, Outcome.EXHAUSTED)


@pytest.mark.parametrize(
    ("own", "outcome"),
    [
        ({"significant_turns": 0}, Outcome.COMPACTED),
        ({"significant_turns": 1}, Outcome.COMPACTED),
        ({"significant_names": 0}, Outcome.COMPACTED),
        ({"significant_novelty": 0}, Outcome.COMPACTED),
        ({"significant_turns": 1, "substantive_words": 1000}, Outcome.SKIPPED),
        ({"significant_turns": 100, "significant_names": 100, "significant_novelty": 1}, Outcome.SKIPPED),
    ],
)
def test_a_conversation_may_have_thresholds_of_its_own(idle, own, outcome):
    a_store().configure_conversation(conversation_id=idle, overrides=own)

    assert under_pressure(idle).outcome is outcome


def test_what_was_passed_over_is_not_under_pressure_until_there_is_more_of_it(idle):
    def pressing() -> list[bool]:
        activity = CompactionActivity.from_settings().activity()
        named = [each.conversation_id for each in activity.pressed]
        assert activity.under_pressure == len(named)
        [listed] = RetrievalEngine.from_settings().browse().conversations
        window = RetrievalEngine.from_settings().lineage_window(conversation_id=idle)
        status = CompactionEngine.from_settings().evaluate(conversation_id=idle)
        assert status.should_compact
        return [named == [idle], listed.is_under_pressure, window.pressure.is_pressing, not status.passed_over]

    assert pressing() == [True] * 4

    under_pressure(idle)
    assert pressing() == [False] * 4

    say(idle, *TALK, *TALK)
    assert pressing() == [True] * 4


def test_above_the_hard_threshold_nothing_counts_as_passed_over(idle, settings):
    under_pressure(idle)
    settings.LCM = {**settings.LCM, "model_token_budget": 4000}

    assert CompactionActivity.from_settings().activity().under_pressure == 1


def test_the_log_has_the_figures_of_what_was_passed_over_and_no_text(idle):
    with structlog.testing.capture_logs() as logs:
        result = under_pressure(idle)

    (finished,) = [entry for entry in logs if entry["event"] == "compaction_finished"]
    assert (finished["outcome"], finished["significance"]) == ("skipped", result.details["significance"])
    assert set(finished["significance"]) == {"turns", "substantive_turns", "new_names", "novelty"}
    assert "server" not in str(logs)


def test_a_person_is_not_second_guessed(idle):
    assert CompactionEngine.from_settings().compact(conversation_id=idle).outcome is Outcome.COMPACTED


def test_backfill_asks_for_what_was_passed_over_in_its_workspace_and_for_nothing_else(idle):
    a_conversation(*TALK, session_id="another")
    engine = CompactionEngine.from_settings()
    assert engine.backfill() == []
    under_pressure(idle)

    jobs = engine.backfill()

    assert [(job.conversation_id, job.reason) for job in jobs] == [(idle, Reason.MANUAL)]
    assert [job.job_id for job in engine.backfill(conversation_id=idle)] == [jobs[0].job_id]
    assert CompactionEngine.from_settings(Scope(a_workspace("other").pk)).backfill() == []
