"""Each invariant of session, arc and epoch summaries finds the damage that it is there for."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import transaction

from compaction.engine import CompactionEngine
from compaction.history.models import SessionSummary
from tests.histories import a_session, current, go_on, summarize
from tests.integrity.breaking import breaking, checked, forging, without

pytestmark = pytest.mark.django_db

OF = "WHERE summary_id = '{session}'"

# By the name of the damage: whether a seal is forged, a constraint that is dropped, the statement, the invariants that
# find it at least.
DAMAGE = {
    "another text": (
        "",
        "",
        f"UPDATE session_summaries SET content = 'x' {OF}",
        "session_summaries_match_their_hashes",
    ),
    "another text of an epoch": (
        "",
        "",
        "UPDATE session_summaries SET content = 'x' WHERE summary_id = '{epoch}'",
        "session_summaries_match_their_hashes",
    ),
    "another hash": (
        "session_summaries",
        "",
        f"UPDATE session_summaries SET summary_hash = 'x' {OF}",
        "session_summaries_match_their_hashes",
    ),
    "a removed item": (
        "",
        "",
        f"DELETE FROM session_summary_memories {OF} AND ordinal = 1",
        "history_sources_are_numbered_from_zero sessions_reach_every_message session_summaries_match_their_hashes",
    ),
    "exchanged items": (
        "",
        "session_summary_memories_pkey",
        f"UPDATE session_summary_memories SET ordinal = 1 - ordinal {OF} AND ordinal < 2",
        "session_summaries_match_their_hashes",
    ),
    "a removed member": (
        "",
        "",
        "DELETE FROM session_summary_children WHERE parent_id = '{arc}' AND ordinal = 0",
        "history_sources_are_numbered_from_zero session_summaries_match_their_hashes",
    ),
    "no members at all": (
        "",
        "",
        "DELETE FROM session_summary_children WHERE parent_id = '{arc}'",
        "history_sources_are_numbered_from_zero",
    ),
    "other members than before": (
        "",
        "",
        "UPDATE session_summary_children SET child_id = '{free}' WHERE parent_id = '{renewed}' AND ordinal = 1",
        "history_keeps_its_members",
    ),
    "a session in two arcs": (
        "",
        "",
        "UPDATE session_summary_children SET child_id = '{session}' WHERE parent_id = '{renewed}' AND ordinal = 1",
        "history_has_one_line",
    ),
    "a member of another project": (
        "session_summaries",
        "",
        f"UPDATE session_summaries SET project_id = NULL {OF}",
        "history_rests_on_its_own",
    ),
    "an item of another conversation": (
        "",
        "",
        f"UPDATE session_summary_memories SET message_id = (SELECT min(message_id) FROM messages"
        f" WHERE conversation_id <> {{conversation}}) {OF} AND ordinal = 1",
        "history_rests_on_its_own sessions_reach_every_message",
    ),
    "another kind": (
        "session_summaries",
        "session_summaries_have_the_depth_of_their_kind",
        f"UPDATE session_summaries SET kind = 'arc' {OF}",
        "history_rests_on_its_own",
    ),
    "a circle": (
        "session_summaries",
        "",
        "UPDATE session_summaries SET supersedes_id = '{renewed}' WHERE summary_id = '{replaced}'",
        "history_has_one_line",
    ),
    "a fork": (
        "session_summaries",
        "session_summaries_supersedes_id_key",
        "UPDATE session_summaries SET supersedes_id = '{replaced}' WHERE summary_id = '{arc}'",
        "history_has_one_line",
    ),
    "two current summaries": (
        "session_summaries",
        "session_summaries_begin_once_per_conversation",
        "UPDATE session_summaries SET supersedes_id = NULL WHERE summary_id = '{again}'",
        "history_has_one_line",
    ),
    "a range that is too long": (
        "session_summaries",
        "",
        f"UPDATE session_summaries SET last_seq = 5 {OF}",
        "history_knows_what_it_covers",
    ),
    "another time": (
        "session_summaries",
        "",
        "UPDATE session_summaries SET earliest_at = earliest_at - interval '1 day' WHERE summary_id = '{epoch}'",
        "history_knows_what_it_covers",
    ),
    "other tokens": (
        "session_summaries",
        "",
        f"UPDATE session_summaries SET token_count = token_count + 1 {OF}",
        "history_tokens_are_recounts",
    ),
    "an unknown counter": (
        "session_summaries",
        "",
        f"UPDATE session_summaries SET token_counter = 'abacus' {OF}",
        "history_tokens_are_recounts",
    ),
    "no text, and not erased": (
        "",
        "",
        f"UPDATE session_summaries SET content = '' {OF}",
        "erased_history_holds_no_text",
    ),
    "another model": ("", "", f"UPDATE session_summaries SET model = 'x' {OF}", "site_rows_match_their_seals"),
    "another name of a project": ("", "", "UPDATE projects SET name = 'x'", "site_rows_match_their_seals"),
    "a project that is gone": ("", "", "DELETE FROM projects", "rows_belong_to_something"),
    "a session that is gone": ("", "", f"DELETE FROM session_summaries {OF}", "rows_belong_to_something"),
    "a conversation of another project": (
        "",
        "",
        "UPDATE conversations SET project_id = NULL WHERE conversation_id = {conversation}",
        "rows_match_their_seals",
    ),
}


@pytest.fixture
def names(settings) -> dict[str, object]:
    """Two arcs, one of them renewed, an epoch, and a session in no arc."""
    settings.LCM = {"sessions_per_arc": 2, "arcs_per_epoch": 2, "leaf_chunk_tokens": 400, "leaf_target_tokens": 64}
    sessions = [a_session(number, length=20) for number in range(5)]
    CompactionEngine.from_settings().compact(conversation_id=sessions[0].conversation_id)
    summarize(sessions)
    go_on(sessions[2])
    summarize([sessions[2]])
    assert checked() == {}
    by_conversation = {each.conversation_id: each for each in current(0)}
    arc, renewed = current(1)
    return {
        "session": by_conversation[sessions[1].conversation_id].pk,
        "again": by_conversation[sessions[2].conversation_id].pk,
        "free": by_conversation[sessions[4].conversation_id].pk,
        "conversation": sessions[1].conversation_id,
        "arc": arc.pk,
        "renewed": renewed.pk,
        "replaced": renewed.supersedes_id,
        "epoch": current(2)[0].pk,
    }


def test_each_damage_is_found_by_the_invariants_that_are_there_for_it(names):
    """One after the other in one project, which is whole again after each."""
    missed = {}
    for damage, (forged, constraint, statement, expected) in DAMAGE.items():
        undone = transaction.savepoint()
        if constraint:
            _drop(constraint)
        touched = (partial(forging, forged) if forged else breaking)(statement.format(**names))
        found = set(checked())
        transaction.savepoint_rollback(undone)
        if not touched or not set(expected.split()) <= found:
            missed[damage] = found

    assert missed == {}
    assert checked() == {}


def _drop(constraint: str) -> None:
    """A partial unique constraint is an index to the database."""
    if "begin_once" in constraint:
        breaking(f"DROP INDEX {constraint}")
    else:
        without(constraint, "session_summary_memories" if "memories" in constraint else "session_summaries")


def test_the_sample_has_all_that_can_be_damaged(names):
    assert SessionSummary.objects.filter(memory_links__memory_summary__isnull=False).exists()
    assert SessionSummary.objects.filter(supersedes__isnull=False).count() == 3
