"""The head of a conversation moves, its context follows, and nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from compaction.engine import CompactionEngine
from compaction.history.session_history import SessionHistory
from compaction.hosts.branching import Branches
from compaction.hosts.host_service import HostCompaction
from conversations.errors import Conflict, Invalid, NotFound, StaleHead, TooLarge
from conversations.models import ContextItem, Conversation, HeadMove, LargeFile, Message, Summary
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, ParentLink, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say
from tests.integrity.breaking import checked, found
from tests.round_trip import assert_ledgers_survive
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def branches() -> Branches:
    return Branches.from_settings(Scope(a_workspace().pk, actor="a person"))


def rewind(conversation_id: int, seq: int, **options: object) -> None:
    branches().move_head(conversation_id=conversation_id, head_seq=seq, **options)


def context(conversation_id: int) -> list[str]:
    """The items of the context: seqs of messages, and the ranges of summaries."""
    items = ContextItem.objects.filter(conversation_id=conversation_id).select_related("message", "summary")
    return [
        str(item.message.seq) if item.summary is None else f"{item.summary.first_seq}-{item.summary.last_seq}"
        for item in items.order_by("ordinal")
    ]


def assert_sound(conversation_id: int) -> None:
    assert found(IntegrityChecker.from_settings().run(conversation_id=conversation_id)) == {}


def assembled(conversation_id: int, **options: object) -> str:
    given = ContextAssembler.from_settings(Scope(a_workspace().pk)).assemble(conversation_id=conversation_id, **options)
    return " ".join(item.text for item in given.items)


@pytest.fixture
def harbour() -> int:
    """Ten messages, of which a leaf stands for the first six."""
    conversation_id = a_conversation(*(f"boat {n}" for n in range(1, 11))).conversation_id
    a_summary_of(a_store(), conversation_id, seqs=range(1, 7), content="Six boats.")
    return conversation_id


@pytest.mark.parametrize(
    ("seq", "shown"),
    [
        (8, ["1-6", "7", "8"]),
        # Behind a summary, what it was made from is back.
        (4, ["1", "2", "3", "4"]),
        (0, []),
    ],
)
def test_a_rewind_takes_messages_out_of_the_context_and_deletes_none(harbour, seq, shown):
    rewind(harbour, seq)

    assert context(harbour) == shown
    assert Message.objects.filter(conversation_id=harbour).count() == 10
    assert Summary.objects.filter(conversation_id=harbour).count() == 1
    assert a_store().get_conversation(conversation_id=harbour).head_seq == seq
    assert "boat 9" not in assembled(harbour)
    assert_sound(harbour)
    say(harbour, "another way")
    assert context(harbour) == [*shown, "11"]


def test_a_rewind_behind_a_condensed_summary_keeps_its_sources_that_are_on_the_path(harbour):
    store = a_store()
    [first] = Summary.objects.filter(conversation_id=harbour)
    second = a_summary_of(store, harbour, seqs=(7, 8), content="Two more.")
    a_summary_of(store, harbour, summaries=[first, second], content="Eight boats.")
    assert context(harbour) == ["1-8", "9", "10"]

    rewind(harbour, 7)

    assert context(harbour) == ["1-6", "7"]
    assert_sound(harbour)


def test_what_is_appended_after_a_rewind_is_a_branch_and_the_old_one_comes_back(harbour):
    rewind(harbour, 4)
    say(harbour, "another 5", "another 6")
    assert context(harbour) == ["1", "2", "3", "4", "11", "12"]

    rewind(harbour, 10)

    assert context(harbour) == ["1-6", "7", "8", "9", "10"]
    assert "another" not in assembled(harbour)
    rewind(harbour, 12)
    assert context(harbour) == ["1", "2", "3", "4", "11", "12"]
    assert_sound(harbour)


def test_branches_are_listed_with_what_is_active_of_them(harbour):
    rewind(harbour, 4)
    say(harbour, "another 5", "another 6")
    rewind(harbour, 11)
    say(harbour, "third way")

    found = branches().list_branches(conversation_id=harbour)

    shown = [(each.first_seq, each.last_seq, each.follows_seq, each.active_to_seq) for each in found]
    assert shown == [(1, 10, 0, 4), (11, 12, 4, 11), (13, 13, 11, 13)]


def test_summaries_of_two_branches_that_overlap_are_not_shown_together(harbour):
    rewind(harbour, 4)
    a_summary_of(a_store(), harbour, seqs=(1, 2, 3), content="Three boats.")
    say(harbour, "another 5")
    assert context(harbour) == ["1-3", "4", "11"]

    rewind(harbour, 10, reason="edit")

    assert context(harbour) == ["1-6", "7", "8", "9", "10"]
    assert_sound(harbour)
    rewind(harbour, 11)
    assert context(harbour) == ["1-3", "4", "11"]
    assert_sound(harbour)
    assert_ledgers_survive([harbour])


def test_a_head_that_is_there_already_is_not_moved(harbour):
    moved = branches().move_head(conversation_id=harbour, head_seq=10)

    assert (moved.head_seq, moved.previous_seq, moved.number) == (10, 10, None)
    assert not HeadMove.objects.exists()


def test_a_move_that_cannot_be_made_changes_nothing(harbour):
    for given, refusal in (
        ({"head_seq": 11}, Invalid),
        ({"head_seq": -1}, Invalid),
        ({"head_seq": 4, "expected_seq": 9}, StaleHead),
        ({"head_seq": 4, "conversation_id": 10**9}, NotFound),
    ):
        with pytest.raises(refusal):
            branches().move_head(**{"conversation_id": harbour, **given})

    assert context(harbour) == ["1-6", "7", "8", "9", "10"]


def test_an_append_expects_the_head_and_not_the_newest_message(harbour):
    rewind(harbour, 8)
    message = [NewMessage(Role.USER, "next")]

    with pytest.raises(StaleHead):
        a_store().append_messages(conversation_id=harbour, messages=message, expected_seq=10)
    a_store().append_messages(conversation_id=harbour, messages=message, expected_seq=8)

    assert context(harbour) == ["1-6", "7", "8", "11"]


def test_a_message_sent_again_after_a_rewind_is_said_to_be_off_the_path():
    conversation_id = a_conversation("one").conversation_id
    sent = NewMessage(Role.USER, "two", idempotency_key="k2")
    say(conversation_id, sent)
    rewind(conversation_id, 1)

    again = say(conversation_id, sent)

    assert [(each.created, each.active) for each in again.messages] == [(False, False)]
    assert context(conversation_id) == ["1"]


def test_the_context_of_a_past_moment_is_that_of_its_branch(harbour):
    rewind(harbour, 4)
    say(harbour, "another 5")

    assert "boat 9" in assembled(harbour, as_of=10)
    assert "another" not in assembled(harbour, as_of=10)
    assert "boat 5" not in assembled(harbour, as_of=11)
    assert "another 5" in assembled(harbour, as_of=11)


@pytest.mark.parametrize(("mode", "sorts"), [("full_text", ("recency", "relevance")), ("regex", ("recency",))])
def test_grep_finds_what_is_active_unless_all_is_asked_for(harbour, mode, sorts):
    rewind(harbour, 4)
    say(harbour, "another boat")
    grep = RetrievalEngine.from_settings(Scope(a_workspace().pk)).grep

    for query, sort, where in product(("boat", "another"), sorts, ({}, {"conversation_id": harbour})):
        active = grep(query=query, mode=mode, sort=sort, limit=100, **where)
        both = grep(query=query, mode=mode, sort=sort, limit=100, branch="all", **where)

        in_all = {each.id for each in both.matches}
        on_path = {1, 2, 3, 4, 11}
        assert {each.id for each in active.matches} == {
            each.id for each in both.matches if each.id.startswith("msg_") and each.first_seq in on_path
        }
        assert (in_all > {each.id for each in active.matches}) == (query != "another")


def test_a_query_brings_no_message_of_another_branch_into_the_context(harbour):
    rewind(harbour, 4)
    say(harbour, "another boat")

    assert "boat 9" not in assembled(harbour, query="boat 9")


def test_a_fork_shares_the_past_and_goes_its_own_way():
    store = a_store()
    source = a_conversation("one", "two", project="boats", metadata={"team": "red"}).conversation_id
    said = NewMessage(Role.USER, "three", idempotency_key="k3", author="ann", metadata={"a": [1.50, {"b": None}]})
    say(source, said, a_tool_call("c1", path="x"), a_tool_result("c1", "y" * 300))
    a_summary_of(store, source, seqs=(1, 2))

    fork = branches().fork_conversation(conversation_id=source, session_id="fork", at_seq=5)
    say(fork.conversation_id, "only here")

    ours = store.list_messages(conversation_id=source)
    theirs = store.list_messages(conversation_id=fork.conversation_id)
    names = ("seq", "role", "content", "content_hash", "token_count", "author", "idempotency_key")
    names += ("metadata", "created_at")
    shown, given = ([[getattr(each, name) for name in names] for each in found] for found in (theirs[:5], ours))
    assert shown == given
    assert [part.tool_call_id for each in theirs for part in each.parts] == ["c1", "c1"]
    assert (fork.parent_id, fork.parent_link, fork.project) == (source, ParentLink.FORK, "boats")
    assert (len(ours), len(theirs)) == (5, 6)
    again = branches().fork_conversation(conversation_id=source, session_id="fork", at_seq=5)
    assert (again.conversation_id, again.created) == (fork.conversation_id, False)
    with pytest.raises(Conflict):
        branches().fork_conversation(conversation_id=source, session_id="fork", at_seq=4)
    assert_sound(fork.conversation_id)


def test_a_fork_keeps_a_compaction_part_that_the_caller_gave():
    source, store = a_conversation().conversation_id, a_store()
    part = NewPart(PartType.COMPACTION, text_content="So far: seven boats.", is_synthetic=True)
    say(source, NewMessage(Role.ASSISTANT, parts=(part,)))

    fork = branches().fork_conversation(conversation_id=source, session_id="fork").conversation_id

    [[theirs], [ours]] = (store.list_messages(conversation_id=each) for each in (fork, source))
    assert [each.text_content for each in theirs.parts] == ["So far: seven boats."]
    assert theirs.content_hash == ours.content_hash
    assert list(branches().messages_on_path(conversation_id=source)) == [ours]


def test_a_fork_of_an_abandoned_branch_holds_its_path(harbour):
    rewind(harbour, 4)
    say(harbour, "another 5")

    fork = branches().fork_conversation(conversation_id=harbour, session_id="fork", at_seq=9)

    found = a_store().list_messages(conversation_id=fork.conversation_id)
    assert [each.content for each in found] == [f"boat {n}" for n in range(1, 10)]


def test_a_fork_shares_large_texts_cold_ones_and_the_place_of_erased_ones():
    store, scope = a_store(), Scope(a_workspace().pk, actor="an admin")
    long = "The ferry left the harbour. " * 600
    source = a_conversation("one", "two", overrides={"large_file_tokens": 2000}).conversation_id
    say(source, long, "four")
    Retention.from_settings(scope).archive(conversation_id=source)
    erasures = Erasures.from_settings(scope)
    preview = erasures.preview_erasure(conversation_id=source, from_seq=2, to_seq=2)
    erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

    fork = branches().fork_conversation(conversation_id=source, session_id="fork").conversation_id

    found = store.list_messages(conversation_id=fork)
    assert [each.content for each in found[:2]] == ["one", ""]
    assert found[2].content.startswith("<large_file ") or "<large_file " in found[2].content
    assert store.get_message(message_id=found[2].message_id, whole=True).content == long
    assert found[3].content == "four"
    assert_sound(fork)


def test_a_fork_stops_before_what_is_quarantined(harbour):
    message = a_store().list_messages(conversation_id=harbour)[4]
    Quarantines.from_settings(Scope(a_workspace().pk)).quarantine(id=message.id, reason="damaged")

    with pytest.raises(Conflict):
        branches().fork_conversation(conversation_id=harbour, session_id="fork")
    fork = branches().fork_conversation(conversation_id=harbour, session_id="fork", at_seq=4)

    assert fork.counters.message_count == 4


def test_a_fork_stops_before_a_text_in_a_quarantined_file():
    own = {"large_file_tokens": 2000}
    source = a_conversation("one", "a line of a long log\n" * 1000, overrides=own).conversation_id
    file_id = LargeFile.objects.get(conversation_id=source).file_id
    Quarantines.from_settings(Scope(a_workspace().pk)).quarantine(id=file_id, reason="damaged")

    with pytest.raises(Conflict):
        branches().fork_conversation(conversation_id=source, session_id="fork")
    with pytest.raises(Conflict):
        list(branches().messages_on_path(conversation_id=source))
    fork = branches().fork_conversation(conversation_id=source, session_id="fork", at_seq=1)

    assert fork.counters.message_count == 1


def test_a_fork_of_more_messages_than_one_transaction_copies_is_refused(harbour, monkeypatch):
    monkeypatch.setattr("compaction.hosts.branching.MOST_COPIED", 4)
    rewind(harbour, 2)
    say(harbour, "another 3", "another 4")

    with pytest.raises(TooLarge):
        branches().fork_conversation(conversation_id=harbour, session_id="fork", at_seq=5)

    assert not Conversation.objects.filter(session_id="fork").exists()
    assert branches().fork_conversation(conversation_id=harbour, session_id="fork").counters.message_count == 4


def test_the_same_fork_is_given_back_though_its_source_goes_on(harbour):
    first = branches().fork_conversation(conversation_id=harbour, session_id="fork")
    say(harbour, "boat 11")

    again = branches().fork_conversation(conversation_id=harbour, session_id="fork")

    assert (again.conversation_id, again.created, again.counters.message_count) == (first.conversation_id, False, 10)
    with pytest.raises(Conflict):
        branches().fork_conversation(conversation_id=harbour, session_id="fork", at_seq=11)
    with pytest.raises(Conflict):
        branches().fork_conversation(conversation_id=first.conversation_id, session_id="fork")


def test_a_session_summary_is_renewed_for_the_branch_that_is_active():
    conversation_id = a_conversation(*(f"The boat {n} left the harbour. " * 20 for n in range(1, 9))).conversation_id
    history = SessionHistory.from_settings(Scope(a_workspace().pk))
    before = history.summarize_session(conversation_id=conversation_id).summary
    rewind(conversation_id, 4)
    say(conversation_id, "A heron stands on the pier. " * 20)

    after = history.summarize_session(conversation_id=conversation_id)

    assert (before.last_seq, after.summary.last_seq, after.created) == (8, 9, True)
    assert checked() == {}
    assert_ledgers_survive([conversation_id])


def test_coverage_counts_what_was_left_and_finds_no_gap(harbour):
    rewind(harbour, 4)
    say(harbour, "another 5")

    coverage = HostCompaction.from_settings(Scope(a_workspace().pk)).verify_coverage(conversation_id=harbour)

    assert coverage.is_complete
    assert (coverage.stored, coverage.raw, coverage.inactive, coverage.unreachable) == (11, 5, 6, 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
def test_the_context_follows_the_head_whatever_happens(engine: Callable[..., CompactionEngine], seed):
    choose = random.Random(seed)
    conversation_id = a_conversation("The first boat came in the evening. " * 6).conversation_id
    follows, head = {1: 0}, 1
    compaction = engine(fresh_tail_count=2, condense_fan_in=2, leaf_chunk_tokens=60, max_active_messages=4)

    for _ in range(14):
        match choose.choice(["append", "append", "append", "move", "compact"]):
            case "append":
                for _ in range(choose.randint(1, 4)):
                    say(conversation_id, f"The boat {len(follows)} left the harbour in the morning. " * 6)
                    follows[len(follows) + 1] = head
                    head = len(follows)
            case "move":
                head = choose.choice([*follows, max(0, head - 1)])
                rewind(conversation_id, head)
            case "compact":
                compaction.compact(conversation_id=conversation_id)
        path, seq = set(), head
        while seq:
            path.add(seq)
            seq = follows[seq]
        shown = set()
        for item in ContextItem.objects.filter(conversation_id=conversation_id):
            shown |= {item.message.seq} if item.summary_id is None else _stood_for(item.summary_id)
        assert shown == path
    assert a_store().get_conversation(conversation_id=conversation_id).head_seq == head
    assert_sound(conversation_id)
    assert Conversation.objects.get(pk=conversation_id).next_seq == len(follows) + 1


def _stood_for(summary_id: str) -> set[int]:
    summary = Summary.objects.get(pk=summary_id)
    found = set(summary.message_links.values_list("message__seq", flat=True))
    for source_id in summary.source_links.values_list("source_id", flat=True):
        found |= _stood_for(source_id)
    return found
