"""What an id names."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from django.db import connection, transaction

from compaction.engine import CompactionEngine
from conversations.errors import NotFound
from conversations.models import LargeFile, Summary
from conversations.scope import Scope
from conversations.sql import first_row
from conversations.types import Level, NewSummary, SummaryKind
from retrieval.describing import describe as module
from retrieval.engine import RetrievalEngine
from retrieval.types import Description, ItemKind, MessageSpan
from tests.factories import a_conversation, a_store, a_workspace
from tests.retrieval.lineages import a_root_of, engine, message_id
from tests.statements import counted_statements, rows_gone_through
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def describe(id: str) -> Description:
    return engine().describe(id=id)


@pytest.fixture
def many_others():
    """Links between the summaries of others, more than anybody would read for one of his own."""
    with connection.cursor() as cursor:
        # Without the triggers and keys that would want the summaries, too.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) "
            "SELECT 'sum_a' || n / 4, 'sum_b' || n, n % 4 FROM generate_series(1, 5000) n"
        )
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
        cursor.execute("ANALYZE summary_parents")


def test_what_is_said_of_a_summary_costs_the_same_however_many_others_there_are(graph, many_others):
    _, first, _, root, _ = graph
    reader = engine()

    costs = []
    for id in (root.summary_id, first.summary_id):
        before = rows_gone_through()
        reader.describe(id=id)
        reader.impact(id=id)
        reader.expand(summary_id=id, depth=-1, include_messages=True)
        costs.append(rows_gone_through() - before)

    assert max(costs) < 500


@pytest.mark.parametrize(
    ("verb", "asked", "statements"),
    [
        ("describe", lambda graph, first: {"id": graph.middle.summary_id}, 3),
        ("describe", lambda graph, first: {"id": first}, 5),
        ("describe_range", lambda graph, first: {"conversation_id": graph.number, "from_seq": 1, "to_seq": 9}, 6),
        ("impact", lambda graph, first: {"id": first}, 3),
        ("lineage", lambda graph, first: {"conversation_id": graph.number}, 5),
        ("lineage_window", lambda graph, first: {"conversation_id": graph.number}, 6),
        ("expand", lambda graph, first: {"summary_id": graph.middle.summary_id, "include_messages": True}, 6),
    ],
)
def test_reading_takes_so_many_statements_whatever_there_is(graph, verb, asked, statements):
    ask, given = getattr(engine(), verb), asked(graph, message_id(graph.number, 1))

    with counted_statements() as sent:
        ask(**given)

    assert len(sent) == statements


def test_a_summary_says_what_it_was_made_from_and_what_it_costs_to_open(graph):
    number, first, second, root, _ = graph

    described = describe(root.summary_id)

    assert (described.kind, described.summary_kind, described.depth) == (ItemKind.SUMMARY, SummaryKind.CONDENSED, 1)
    assert (described.first_seq, described.last_seq, described.message_count) == (1, 6, 6)
    assert described.sources == (first.summary_id, second.summary_id)
    assert described.source_messages == (MessageSpan(3, 3),)
    assert described.derived == ()
    assert described.active
    straggler = a_store().list_messages(conversation_id=number, after_seq=2, limit=1)[0]
    assert described.opening_tokens == first.token_count + second.token_count + straggler.token_count
    assert described.source_tokens == root.source_tokens
    assert described.content == root.content


def test_a_leaf_says_which_messages_it_stands_for_and_what_stands_for_it(graph):
    _, first, _, root, _ = graph

    described = describe(first.summary_id)

    assert described.source_messages == (MessageSpan(1, 2), MessageSpan(4, 4))
    assert described.derived == (root.summary_id,)
    assert [outline.summary_id for outline in described.held_by] == [root.summary_id]
    assert not described.active
    assert described.opening_tokens == first.source_tokens
    assert described.manifest == ()


def test_the_manifest_is_everything_below_in_order(graph):
    number, first, second, root, third = graph
    top = a_root_of(graph)

    described = describe(top.summary_id)

    assert [(outline.summary_id, outline.distance) for outline in described.manifest] == [
        (root.summary_id, 1),
        (first.summary_id, 2),
        (second.summary_id, 2),
        (third.summary_id, 1),
    ]
    assert described.manifest_complete
    assert described.sources == (root.summary_id, third.summary_id)


def test_a_manifest_has_an_end(graph, monkeypatch):
    number, _, _, root, third = graph
    top = a_root_of(graph)
    monkeypatch.setattr(module, "MOST_IN_MANIFEST", 2)

    described = describe(top.summary_id)

    assert len(described.manifest) == 2
    assert not described.manifest_complete


def test_a_message_says_which_summaries_hold_it_up_to_the_active_one(graph):
    number, first, _, root, third = graph
    top = a_root_of(graph)
    message = a_store().list_messages(conversation_id=number, limit=1)[0]

    described = describe(message.id)

    assert [(outline.summary_id, outline.active) for outline in described.held_by] == [
        (first.summary_id, False),
        (root.summary_id, False),
        (top.summary_id, True),
    ]
    assert (described.active, described.first_seq, described.content_hash) == (False, 1, message.content_hash)
    assert described.derived == (first.summary_id,)


def test_a_raw_message_is_active_and_held_by_nothing(graph):
    number, *_ = graph
    message = a_store().list_messages(conversation_id=number, after_seq=8)[0]

    described = describe(message.id)

    assert described.active
    assert described.held_by == ()


def test_a_file_is_described_by_what_was_found_out_about_it():
    number = a_conversation("a file").conversation_id
    LargeFile.objects.create(
        file_id="file_00ff00ff00ff00ff",
        conversation_id=number,
        file_name="log.txt",
        mime_type="text/plain",
        byte_size=123,
        storage_uri="file:///nowhere",
        exploration_summary="A log.",
    )

    described = describe("file_00ff00ff00ff00ff")

    assert (described.kind, described.file_name, described.byte_size) == (ItemKind.FILE, "log.txt", 123)
    assert described.exploration_summary == "A log."


def test_what_is_not_there_is_not_found(graph):
    numbers = [
        f"{kind}_{number}" for kind in ("msg", "conv") for number in ("-1", "01", "9" * 12, "9" * 30, "9" * 5000)
    ]
    others = [f"{kind}_{name}" for kind in ("sum", "file", "run") for name in ("f" * 16, "\x00", "a" * 100_000)]
    for id in (*numbers, *others, "", "nothing", "session\ud800"):
        with pytest.raises(NotFound):
            describe(id)


def test_a_run_says_what_it_came_to_and_which_summaries_it_made_and_its_conversation_names_it():
    number = a_conversation(*(f"message {seq} about boats. " * 40 for seq in range(40))).conversation_id
    before = describe(f"conv_{number}")
    result = CompactionEngine.from_settings().compact(conversation_id=number)

    described, after = describe(result.run_id), describe(f"conv_{number}")

    made = Summary.objects.filter(run_id=result.run_id)
    assert (described.kind, described.conversation_id) == (ItemKind.RUN, number)
    assert described.run == CompactionEngine.from_settings().get_run(run_id=result.run_id)
    assert (before.run_id, before.run, after.run_id, after.run) == (None, None, result.run_id, described.run)
    assert {outline.summary_id for outline in described.manifest} == {each.summary_id for each in made}
    assert described.summary_count == len(made) > 0
    assert describe(described.manifest[0].summary_id).run_id == result.run_id


def test_a_conversation_says_what_it_holds_and_what_a_model_sees(graph):
    number, first, second, root, third = graph
    session_id = a_store().get_conversation(conversation_id=number).session_id

    described = describe(f"conv_{number}")

    assert (described.kind, described.id) == (ItemKind.CONVERSATION, f"conv_{number}")
    assert [outline.summary_id for outline in described.manifest] == [root.summary_id, third.summary_id]
    assert described.raw_messages == (MessageSpan(9, 9),)
    assert (described.first_seq, described.last_seq, described.message_count) == (1, 9, 9)
    assert (described.summary_count, described.depth) == (4, 1)
    assert described.conversation == a_store().get_conversation(conversation_id=number)
    assert describe(session_id) == described


def test_a_session_that_looks_like_an_id_goes_behind_that_id_and_before_ids_in_its_name(graph):
    number, first, *_ = graph
    a_conversation("hello", session_id=first.summary_id)
    named_after_it = a_conversation("hello", session_id=f"about {first.summary_id}").conversation_id

    assert describe(first.summary_id).kind is ItemKind.SUMMARY
    assert describe(f"about {first.summary_id}").id == f"conv_{named_after_it}"
    assert describe(f'<summary id="{first.summary_id}" kind="leaf">').id == first.summary_id


def test_a_session_of_several_workspaces_is_nobodys_for_those_who_see_them_all(graph):
    for workspace in ("one", "two"):
        a_conversation("hello", session_id="shared", workspace=a_workspace(workspace))

    with pytest.raises(NotFound):
        RetrievalEngine.from_settings().describe(id="shared")
    assert RetrievalEngine.from_settings(Scope(a_workspace("one").pk)).describe(id="shared").id.startswith("conv_")


def test_a_summary_that_was_made_again_says_by_which_and_that_one_says_of_which(graph):
    number, *_, third = graph
    again = replace(third, summary_id="", content="Said better.", supersedes_id=third.summary_id)
    store = a_store()
    with transaction.atomic():
        values = {each.name: getattr(again, each.name) for each in fields(NewSummary)}
        newer = store.insert_summary(summary=NewSummary(**values))
        messages = [each.message_id for each in store.get_summary_messages(summary_id=third.summary_id)]
        store.link_summary_to_messages(summary_id=newer.summary_id, message_ids=messages)
        first_row("SELECT * FROM lcm_show_instead(%s, %s, %s)", (number, newer.summary_id, 9))

    old, new = describe(third.summary_id), describe(newer.summary_id)

    assert (old.superseded_by, old.supersedes, old.active) == (newer.summary_id, None, False)
    assert (new.superseded_by, new.supersedes, new.active) == (None, third.summary_id, True)
    held_by = describe(f"msg_{messages[0]}").held_by
    assert {(each.summary_id, each.superseded_by) for each in held_by} == {
        (third.summary_id, newer.summary_id),
        (newer.summary_id, None),
    }


def test_what_belongs_to_somebody_else_is_not_found_either(graph):
    foreign = a_conversation("secret", "more", workspace=a_workspace("another"))
    store = a_store(a_workspace("another"))
    summary = a_summary_of(store, foreign.conversation_id, seqs=[1])
    message = store.list_messages(conversation_id=foreign.conversation_id, limit=1)[0]

    for id in (summary.summary_id, message.id, f"conv_{foreign.conversation_id}", foreign.session_id):
        with pytest.raises(NotFound):
            describe(id)


@pytest.mark.parametrize(
    ("level", "confidence", "reason"),
    [
        (Level.NORMAL, 0.7, "single-memory"),
        (Level.AGGRESSIVE, 0.5, "pattern-matched"),
        (Level.DETERMINISTIC, 0.3, "llm-uncertain"),
    ],
)
def test_the_confidence_in_a_summary_follows_from_its_level_wherever_that_is_shown(level, confidence, reason):
    number = a_conversation("The port is 5433.", "So be it.").conversation_id
    store, reader = a_store(), engine()
    below = a_summary_of(store, number, seqs=[1, 2], level=level)
    above = a_summary_of(store, number, summaries=[below], level=level)

    shown = [
        reader.describe(id=below.summary_id),
        *reader.describe(id=below.summary_id).held_by,
        *reader.describe(id=above.summary_id).manifest,
        *reader.lineage(conversation_id=number).nodes,
        *reader.lineage_window(conversation_id=number).summaries,
    ]

    assert len(shown) >= 7
    assert {each.confidence for step in reader.impact(id=below.summary_id).levels for each in step.items} == {
        confidence
    }
    assert {(each.level, each.confidence, each.confidence_reason) for each in shown} == {(level, confidence, reason)}


def test_the_refusal_of_another_kind_of_id_names_the_tool_for_it():
    for ask in (lambda: describe("map_00"), lambda: engine().expand(summary_id="map_00")):
        with pytest.raises(NotFound, match="lcm_map_status"):
            ask()
