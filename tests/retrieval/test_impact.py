"""What depends on a thing, what it was made from, and how far away."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from compaction.history.models import SessionSummary, SessionSummaryChild, SessionSummaryMemory
from conversations.errors import NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, Project
from conversations.scope import Scope
from conversations.types import ContextItemType, Level, NewMessage, NewPart, PartType, Role
from retrieval.describing.lineage import Impact, ImpactKind, ImpactLabel
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.integrity.breaking import breaking
from tests.retrieval.lineages import Graph, a_graph, a_root_of, engine, message_id
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def graph(module_rows: None) -> tuple[Any, ...]:
    made = a_graph()
    return (*made, a_root_of(made))


def impact(id: str, **options: Any) -> Impact:
    return engine().impact(id=id, **options)


def reached(id: str, **options: Any) -> list[tuple[int, str]]:
    return [(item.distance, item.id) for level in impact(id, **options).levels for item in level.items]


def test_a_message_reaches_the_context_through_everything_made_from_it(graph):
    number, first, _, middle, _, root = graph

    found = impact(message_id(number, 1))

    assert [
        (level.distance, level.label, level.count, level.tokens, level.active, [item.id for item in level.items])
        for level in found.levels
    ] == [
        (1, ImpactLabel.WILL_BREAK, 1, first.token_count, 0, [first.summary_id]),
        (2, ImpactLabel.LIKELY_AFFECTED, 1, middle.token_count, 0, [middle.summary_id]),
        (3, ImpactLabel.MAY_NEED_TESTING, 1, root.token_count, 1, [root.summary_id]),
    ]
    assert (found.active, found.count, found.active_count, found.items_complete) == (False, 3, 1, True)
    assert found.tokens == first.token_count + middle.token_count + root.token_count


def test_a_straggler_reaches_what_was_made_from_it_directly(graph):
    number, _, _, middle, _, root = graph

    assert reached(message_id(number, 3)) == [(1, middle.summary_id), (2, root.summary_id)]


def test_from_what_a_model_sees_itself_nothing_derives(graph):
    number, *_, root = graph

    for id in (message_id(number, 9), root.summary_id):
        found = impact(id)

        assert (found.active, found.count, found.levels) == (True, 0, ())


def test_downstream_is_what_a_summary_was_made_from(graph):
    number, first, second, middle, third, root = graph

    found = impact(root.summary_id, direction="downstream")

    assert reached(root.summary_id, direction="downstream", max_depth=1) == [
        (1, middle.summary_id),
        (1, third.summary_id),
    ]
    assert {item.id for item in found.levels[1].items} == {
        first.summary_id,
        second.summary_id,
        *(message_id(number, seq) for seq in (3, 7, 8)),
    }
    assert [level.count for level in found.levels] == [2, 5, 5]
    assert {level.label for level in found.levels} == {None}
    assert impact(message_id(number, 1), direction="downstream").levels == ()


def test_all_are_counted_and_so_many_listed(graph):
    number, first, *_ = graph

    found = impact(message_id(number, 1), limit=1)

    assert [[item.id for item in level.items] for level in found.levels] == [[first.summary_id], [], []]
    assert (found.count, found.items_complete) == (3, False)


def test_no_step_goes_through_a_summary_that_is_less_sure_than_is_wanted(graph):
    number, first, _, middle, _, root = graph
    breaking(
        "UPDATE summaries SET level = CASE summary_id WHEN %s THEN 'aggressive' ELSE 'normal' END", middle.summary_id
    )

    assert reached(message_id(number, 1), min_confidence=0.7) == [(1, first.summary_id)]
    assert reached(message_id(number, 1), min_confidence=0.5)[1:] == [(2, middle.summary_id), (3, root.summary_id)]
    assert reached(middle.summary_id, direction="downstream", min_confidence=0.7) == []
    assert [item.confidence for level in impact(message_id(number, 1)).levels for item in level.items] == [
        0.7,
        0.5,
        0.7,
    ]


def test_on_a_file_depend_the_messages_that_name_it_and_what_was_made_of_them():
    number = a_conversation("Here it comes.").conversation_id
    stored = LargeFileService.from_settings(Scope(a_workspace().pk)).store(
        conversation_id=number, content=b"a,b\n1,2\n", file_name="a.csv"
    )
    named = NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_name="a.csv", file_url=stored.file_id),))
    say(number, named)
    leaf = a_summary_of(a_store(), number, seqs=[1, 2])

    assert reached(stored.file_id) == [(1, message_id(number, 2)), (2, leaf.summary_id)]
    assert reached(leaf.summary_id, direction="downstream")[-1] == (2, stored.file_id)
    assert impact(leaf.summary_id, direction="downstream").levels[1].items[0].file_name == "a.csv"


def a_session_of(graph: Graph, project: Project, summary_id: str, **links: Any) -> SessionSummary:
    """A session summary of a summary, or an arc of a session."""
    workspace = a_workspace()
    is_session = "memory_summary_id" in links
    values = {
        "workspace": workspace,
        "project": project,
        "conversation_id": graph.number if is_session else None,
        "depth": 0 if is_session else 1,
        "kind": "session" if is_session else "arc",
        "content": summary_id,
        "token_count": 5,
        "token_counter": "words",
        "earliest_at": timezone.now(),
        "latest_at": timezone.now(),
        "level": Level.NORMAL,
        "confidence": 0.7,
        "model": "",
        "summary_hash": b"0" * 32,
    }
    if is_session:
        values |= {"first_seq": 1, "last_seq": 9}
    with transaction.atomic():
        made = SessionSummary.objects.create(summary_id=summary_id, **values)
        if is_session:
            SessionSummaryMemory.objects.create(summary=made, ordinal=0, item_type=ContextItemType.SUMMARY, **links)
        else:
            SessionSummaryChild.objects.create(parent=made, ordinal=0, **links)
    return made


def test_across_conversations_it_goes_on_through_sessions_and_arcs():
    graph = a_graph()
    project = Project.objects.create(workspace=a_workspace(), name="harbour")
    Conversation.objects.filter(pk=graph.number).update(project=project)
    session = a_session_of(graph, project, "ses_00000000000000a0", memory_summary_id=graph.middle.summary_id)
    arc = a_session_of(graph, project, "ses_00000000000000a1", child=session)

    assert reached(graph.middle.summary_id) == [(1, session.pk), (2, arc.pk)]
    found = impact(arc.pk, direction="downstream", max_depth=2)
    assert (found.kind, found.active) == (ImpactKind.SESSION_SUMMARY, True)
    assert [[item.id for item in level.items] for level in found.levels] == [[session.pk], [graph.middle.summary_id]]


def test_what_names_nothing_that_others_depend_on_is_not_found(graph):
    foreign = a_conversation("secret", workspace=a_workspace("another"))
    store = a_store(a_workspace("another"))

    for id in (
        store.list_messages(conversation_id=foreign.conversation_id)[0].id,
        f"conv_{graph[0]}",
        "file_00ff00ff00ff00ff",
        "ses_00ff00ff00ff00ff",
        "msg_01",
        "nothing",
    ):
        with pytest.raises(NotFound):
            impact(id)
