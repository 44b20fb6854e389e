"""Settings that cannot be satisfied together are refused with the sum that shows it; all others are let be."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.planning.forecast import forecast
from compaction.policy import CompactionPolicy
from conversations.errors import Invalid
from conversations.policy import check_overrides
from conversations.types import SummaryKind
from lcmsite.ops.checks import compaction_can_work, sizes_fit_each_other
from tests.compaction.slots import chat
from tests.factories import a_conversation, a_store

REFUSED = [
    (
        {"context_threshold": 0.95},
        "context_threshold 0.95 is above hard_threshold 0.9: compaction would start later than it may be put off. "
        "Lower the first or raise the second.",
    ),
    (
        {"leaf_chunk_tokens": 150},
        "leaf_chunk_tokens 150 x 0.7 = 105 is less than the 52 + 100 = 152 tokens of a summary with its shell: "
        "no chunk would be worth a summary. It must be 285 or more.",
    ),
    (
        {"condense_fan_in": 2, "leaf_target_tokens": 32},
        "condense_fan_in 2 x (leaf_target_tokens 32 + 100 for its shell) x 0.7 = 184.8 is less than the "
        "132 + 100 = 232 tokens of a summary with its shell: no leaf summaries would be condensed. "
        "Together they must come to 499 instead of 264; or set max_depth to 0, for no condensed summaries.",
    ),
    (
        {"fresh_tail_count": 300},
        "fresh_tail_count 300 is more than max_active_messages 200: compaction would start for messages that it "
        "never touches.",
    ),
    (
        {"model_token_budget": 300},
        "context_threshold 0.75 x model_token_budget 300 = 225 does not hold what compaction leaves at the least, "
        "fresh_tail_count 8 x 5 tokens and the 99 + 100 = 199 tokens of a summary with its shell, 239 together: "
        "it would start again at every message.",
    ),
]


@pytest.mark.parametrize(("overrides", "sentence"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_can_never_work_is_refused_with_its_sum(overrides, sentence):
    with pytest.raises(Invalid) as refusal:
        check_overrides(overrides)

    assert refusal.value.code == "cannot_be_satisfied"
    assert refusal.value.detail == sentence


@pytest.mark.parametrize(
    "overrides",
    [
        {"context_threshold": 0.9},
        {"hard_threshold": 0.75},
        {"context_threshold": 0.95, "hard_threshold": 0.95},
        {"leaf_chunk_tokens": 285},
        {"leaf_chunk_tokens": 189, "leaf_target_tokens": 32},
        {"leaf_target_tokens": 100_000},
        {"condense_fan_in": 2, "leaf_target_tokens": 32, "max_depth": 0},
        {"condense_fan_in": 2},
        {"context_threshold": 0.4},
        {"compaction_goal": 1.0},
        {"compaction_goal": 0.0},
        {"fresh_tail_count": 200},
        {"fresh_tail_count": 300, "max_active_messages": 300},
        {"model_token_budget": 300, "autocompact_disabled": True},
        {"model_token_budget": 320},
    ],
    ids=str,
)
def test_what_works_in_its_way_is_not_refused(overrides):
    assert check_overrides(overrides) == overrides


@pytest.mark.django_db
def test_a_contradiction_is_refused_when_a_conversation_is_opened_and_when_it_is_configured(settings):
    settings.LCM = {"context_threshold": 0.88}
    number = a_conversation(session_id="s1").conversation_id
    overrides = {"hard_threshold": 0.85}

    for save in (
        partial(a_store().open_conversation, session_id="s2"),
        partial(a_store().configure_conversation, conversation_id=number),
    ):
        with pytest.raises(Invalid, match=r"context_threshold 0\.88 is above hard_threshold 0\.85") as refusal:
            save(overrides=overrides)
        assert refusal.value.code == "cannot_be_satisfied"
    assert compaction_can_work(None) == []


def test_a_site_does_not_start_with_sizes_that_leave_no_room(settings):
    settings.LCM = {"upload_chunk_bytes": 128 * 1024**2, "chat_url": "http://h/v1", "chat_model": "small"}
    settings.LCM |= {"chat_window_tokens": 4_096, "model_max_output_tokens": 4_096}

    chunk, window = sizes_fit_each_other(None)

    assert (chunk.id, window.id) == ("lcm.E020", "lcm.E021")
    assert "134,217,728" in chunk.msg and "67,108,864" in chunk.msg
    assert "LCM_MODEL_MAX_OUTPUT_TOKENS 4,096 fills LCM_CHAT_WINDOW_TOKENS 4,096" in window.msg
    settings.LCM = {}
    assert sizes_fit_each_other(None) == []


def test_the_operators_own_settings_are_a_system_check(settings):
    settings.LCM = {"leaf_chunk_tokens": 150, "fresh_tail_count": 300}

    found = compaction_can_work(None)

    assert [each.id for each in found] == ["lcm.E007", "lcm.E007"]
    assert "150 x 0.7 = 105" in found[0].msg


@given(st.integers(100, 500), st.integers(32, 300), st.integers(2, 3))
def test_a_full_chunk_is_refused_exactly_if_no_run_would_summarize_it(chunk: int, target: int, fan_in: int):
    policy = CompactionPolicy(leaf_chunk_tokens=chunk, leaf_target_tokens=target, condense_fan_in=fan_in)
    # Messages of a token each, which fill their chunks to the last token.
    slots = chat(fan_in * chunk + policy.fresh_tail_count, tokens=1)

    kinds = {planned.step.kind for planned in forecast(slots, policy).steps}

    refused = " ".join(policy.contradictions())
    assert ("leaf_chunk_tokens" in refused) == (SummaryKind.LEAF not in kinds)
    assert "condense_fan_in" not in refused or SummaryKind.CONDENSED not in kinds
