"""A window on the lineage says what stands between two seqs, now and when a run was through."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from conversations.errors import Invalid, NotFound
from tests.factories import a_conversation, say
from tests.retrieval.lineages import engine

pytestmark = pytest.mark.django_db

SMALL = {"leaf_chunk_tokens": 600, "leaf_target_tokens": 60, "condensed_target_tokens": 90, "fresh_tail_count": 4}


def a_history(messages: int = 120) -> int:
    """A conversation compacted twice, to depth 1 and beyond, with a raw end."""
    texts = [f"Message {n} is about the parser of module_{n}.py and " + "its many words " * 12 for n in range(messages)]
    half = messages // 2
    conversation_id = a_conversation(*texts[:half], overrides=SMALL).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    say(conversation_id, *texts[half:])
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


@pytest.fixture(scope="module")
def conversation_id(module_rows: None) -> int:
    return a_history()


def test_the_whole_history_is_a_window(conversation_id):
    window = engine().lineage_window(conversation_id=conversation_id)

    whole = engine().lineage(conversation_id=conversation_id)
    assert (window.first_seq, window.last_seq, window.message_count) == (1, 120, 120)
    assert {node.summary_id for node in window.summaries} == {node.summary_id for node in whole.nodes}
    assert {each.summary_id for each in window.summaries if each.active} == {
        node.summary_id for node in whole.nodes if node.active
    }
    assert max(each.depth for each in window.summaries) >= 1
    assert window.raw == whole.raw_messages
    assert window.tail_from_seq == 117
    assert sum(run.summaries for run in window.runs) == len(window.summaries)


def test_what_is_active_and_what_is_raw_cover_every_message_once(conversation_id):
    window = engine().lineage_window(conversation_id=conversation_id)

    assert window.messages is not None
    for message in window.messages:
        covering = [each for each in window.summaries if each.active and each.first_seq <= message.seq <= each.last_seq]
        assert len(covering) + message.raw == 1


def test_a_narrow_window_holds_what_reaches_into_it(conversation_id):
    window = engine().lineage_window(conversation_id=conversation_id, from_seq=10, to_seq=19)

    assert [message.seq for message in window.messages or ()] == list(range(10, 20))
    assert all(each.first_seq <= 19 and each.last_seq >= 10 for each in window.summaries)
    assert any(each.depth == 0 for each in window.summaries)


def test_a_wide_window_does_not_tell_single_messages(conversation_id, monkeypatch):
    monkeypatch.setattr("retrieval.describing.window.MOST_MESSAGES", 50)

    window = engine().lineage_window(conversation_id=conversation_id)

    assert window.messages is None


def test_a_window_as_of_a_run_shows_the_context_of_then(assembler, conversation_id):
    first_run, *_, last_run = [run.run_id for run in engine().lineage_window(conversation_id=conversation_id).runs]

    then = engine().lineage_window(conversation_id=conversation_id, as_of_run=first_run)
    now = engine().lineage_window(conversation_id=conversation_id, as_of_run=last_run)

    assembled = assembler.assemble(conversation_id=conversation_id, budget=1_000_000, as_of=first_run)
    shown = {item.id for item in assembled.items if item.id.startswith("sum_")}
    assert then.message_count == 60
    assert {each.summary_id for each in then.summaries if each.active} == shown
    assert {each.summary_id for each in now.summaries if each.active} == {
        each.summary_id for each in engine().lineage_window(conversation_id=conversation_id).summaries if each.active
    }
    assert sum(span.last_seq - span.first_seq + 1 for span in then.raw) == len(
        [item for item in assembled.items if item.id.startswith("msg_")]
    )


@pytest.fixture(scope="module")
def long_id(module_rows: None) -> int:
    return a_history(240)


@pytest.mark.parametrize("is_past", [False, True])
def test_what_a_picture_could_not_tell_apart_comes_in_bundles(long_id, is_past):
    conversation_id = long_id
    run = engine().lineage_window(conversation_id=conversation_id).runs[0].run_id if is_past else None

    def window(**options):
        return engine().lineage_window(conversation_id=conversation_id, as_of_run=run, **options)

    whole, coarse, coarsest = window(), window(resolution=8), window(resolution=1)

    for bundled in (coarse, coarsest):
        assert bundled.bundles and {each.summary_id for each in bundled.summaries} < {
            each.summary_id for each in whole.summaries
        }
        assert [each for each in bundled.summaries if each.active] == [each for each in whole.summaries if each.active]
        for depth in {each.depth for each in whole.summaries}:
            in_bundles = [each for each in bundled.bundles if each.depth == depth]
            told = [each for each in bundled.summaries if each.depth == depth]
            of_depth = [each for each in whole.summaries if each.depth == depth]
            assert len(told) + sum(each.summaries for each in in_bundles) == len(of_depth)
            assert sum(each.source_tokens for each in (*told, *in_bundles)) == sum(
                each.source_tokens for each in of_depth
            )
    # The whole window in one part, and its bundles no wider than eight of them.
    assert len(coarsest.bundles) <= 1 + max(each.depth for each in whole.summaries)
    assert max(each.last_seq - each.first_seq + 1 for each in coarse.bundles) <= 9 * 240 / 8
    assert window(resolution=10_000) == whole


def test_an_empty_conversation_is_an_empty_window():
    window = engine().lineage_window(conversation_id=a_conversation().conversation_id)

    assert (window.summaries, window.raw, window.messages, window.runs) == ((), (), (), ())


def test_windows_that_cannot_be_are_refused(conversation_id):
    with pytest.raises(Invalid, match="from_seq must not be after to_seq"):
        engine().lineage_window(conversation_id=conversation_id, from_seq=9, to_seq=8)
    with pytest.raises(Invalid):
        engine().lineage_window(conversation_id=conversation_id, from_seq=1_000)
    for run in ("run_none", "\x00"):
        with pytest.raises(NotFound, match="no run"):
            engine().lineage_window(conversation_id=conversation_id, as_of_run=run)
    with pytest.raises(NotFound):
        engine().lineage_window(conversation_id=10**9)
