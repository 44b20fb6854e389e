"""Each invariant of session, arc and epoch summaries finds the damage that it is there for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest
from django.test import override_settings

from compaction.history.models import SessionSummary
from tests.histories import SIZES, arcs_and_an_epoch, current
from tests.integrity.breaking import breaking, checked, forging, without

pytestmark = pytest.mark.django_db

HASHES, NUMBERED = "session_summaries_match_their_hashes", "history_sources_are_numbered_from_zero"
REACHED, OWN, ONE_LINE = "sessions_reach_every_message", "history_rests_on_its_own", "history_has_one_line"
COVERED, COUNTED, PRESENT = "history_knows_what_it_covers", "history_tokens_are_recounts", "rows_belong_to_something"


class Damage(NamedTuple):
    """A statement, what finds it at least, whether seals are forged, and a constraint that is dropped."""

    statement: str
    found_by: set[str]
    forged: bool = False
    without: str = ""


def another(change: str, *found_by: str, of: str = "session", forged: bool = True, without: str = "") -> Damage:
    """Another value in a session, arc or epoch summary."""
    statement = f"UPDATE session_summaries SET {change} WHERE summary_id = '{{{of}}}'"
    return Damage(statement, set(found_by), forged, without)


def member(child: str, found_by: str) -> Damage:
    """Another member of an arc."""
    change = f"child_id = '{{{child}}}' WHERE parent_id = '{{renewed}}' AND ordinal = 1"
    return Damage(f"UPDATE session_summary_children SET {change}", {found_by})


def item(statement: str, *found_by: str, without: str = "") -> Damage:
    """Another item that a session rests on."""
    return Damage(f"{statement} AND summary_id = '{{session}}'", set(found_by), without=without)


DAMAGE = {
    "another text": another("content = 'x'", HASHES, forged=False),
    "a removed item": item("DELETE FROM session_summary_memories WHERE ordinal = 1", NUMBERED, REACHED, HASHES),
    "exchanged items": item(
        "UPDATE session_summary_memories SET ordinal = 1 - ordinal WHERE ordinal < 2",
        HASHES,
        without="session_summary_memories_pkey",
    ),
    "a removed member": Damage(
        "DELETE FROM session_summary_children WHERE parent_id = '{arc}' AND ordinal = 0", {NUMBERED, HASHES}
    ),
    "no members at all": Damage("DELETE FROM session_summary_children WHERE parent_id = '{arc}'", {NUMBERED}),
    "other members than before": member("free", "history_keeps_its_members"),
    "a session in two arcs": member("session", ONE_LINE),
    "a member of another project": another("project_id = NULL", OWN),
    "an item of another conversation": item(
        "UPDATE session_summary_memories SET message_id = (SELECT min(message_id) FROM messages"
        " WHERE conversation_id <> {conversation}) WHERE ordinal = 1",
        OWN,
        REACHED,
    ),
    "another kind": another("kind = 'arc'", OWN, without="session_summaries_have_the_depth_of_their_kind"),
    "a circle": another("supersedes_id = '{renewed}'", ONE_LINE, of="replaced"),
    "a fork": another(
        "supersedes_id = '{replaced}'", ONE_LINE, of="arc", without="session_summaries_supersedes_id_key"
    ),
    "two current summaries": another(
        "supersedes_id = NULL", ONE_LINE, of="again", without="session_summaries_begin_once_per_conversation"
    ),
    "a range that is too long": another("last_seq = 5", COVERED),
    "another time": another("earliest_at = earliest_at - interval '1 day'", COVERED, of="epoch"),
    "an unknown counter": another("token_counter = 'abacus'", COUNTED),
    "no text, and not erased": another("content = ''", "erased_history_holds_no_text", forged=False),
    "another model": another("model = 'x'", "site_rows_match_their_seals", forged=False),
    "a project that is gone": Damage("DELETE FROM projects", {PRESENT}),
    "a session that is gone": Damage("DELETE FROM session_summaries WHERE summary_id = '{session}'", {PRESENT}),
    "a conversation of another project": Damage(
        "UPDATE conversations SET project_id = NULL WHERE conversation_id = {conversation}", {"rows_match_their_seals"}
    ),
}


@pytest.fixture(scope="module")
def names(module_rows: None) -> Iterator[dict[str, object]]:
    with override_settings(LCM=SIZES):
        yield a_history()


def a_history() -> dict[str, object]:
    """The ids of what it is made of, by name."""
    sessions = arcs_and_an_epoch()
    assert checked() == {}
    assert SessionSummary.objects.filter(memory_links__memory_summary__isnull=False).exists()
    assert SessionSummary.objects.filter(supersedes__isnull=False).count() == 3
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


@pytest.mark.sampled(8)
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_each_damage_is_found_by_the_invariants_that_are_there_for_it(names, damage):
    if damage.without:
        _drop(damage.without)
    do = partial(forging, "session_summaries") if damage.forged else breaking

    assert do(damage.statement.format(**names)) > 0

    assert damage.found_by <= checked().keys()


def _drop(constraint: str) -> None:
    """A partial unique constraint is an index to the database."""
    if "begin_once" in constraint:
        breaking(f"DROP INDEX {constraint}")
    else:
        without(constraint, "session_summary_memories" if "memories" in constraint else "session_summaries")
