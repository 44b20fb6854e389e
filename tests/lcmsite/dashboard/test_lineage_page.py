"""The lineage page shows what the services say, in few questions, and takes nobody's words for a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from compaction.engine import CompactionEngine
from compaction.hosts.branching import Branches
from conversations.models import Conversation, HeadMove
from conversations.types import NewMessage, Role
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, say
from tests.lcmsite.dashboard.test_questions import MOST_OF_A_LINEAGE
from tests.statements import counted_statements

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
SMALL = {"leaf_chunk_tokens": 600, "leaf_target_tokens": 60, "condensed_target_tokens": 90, "fresh_tail_count": 4}


@pytest.fixture(scope="module")
def conversation_id(module_rows: None) -> int:
    """A compacted conversation in whose words and title somebody has put a page of their own."""
    texts = [f"{HOSTILE} Turn {n} reads src/module_{n}.py " + "with many words " * 12 for n in range(100)]
    conversation_id = a_conversation(*texts, title=HOSTILE, overrides=SMALL).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


@pytest.fixture
def path(conversation_id: int) -> str:
    return f"/w/default/conversations/{conversation_id}/lineage/"


def summaries(conversation_id: int) -> list[str]:
    window = RetrievalEngine.from_settings().lineage_window(conversation_id=conversation_id)
    return [each.summary_id for each in window.summaries if each.active]


def test_the_page_shows_every_summary_of_the_context(reader, path, conversation_id):
    page = reader.get(path).content.decode()

    shown = set(re.findall(r'data-node="(sum_\w+)"', page))
    assert set(summaries(conversation_id)) <= shown
    assert "<script>alert" not in page and "<img src=x" not in page


def test_a_window_is_drawn_anew_without_the_page(reader, path):
    answer = reader.get(f"{path}window/?from=10&to=30&width=700").content.decode()

    assert "<html" not in answer
    assert 'data-from="10" data-to="30"' in answer
    assert answer.count('class="stick') == 21


def test_what_a_moved_head_left_is_marked_as_off_the_active_path(reader, path, conversation_id):
    Branches.from_settings().move_head(conversation_id=conversation_id, head_seq=98)
    say(conversation_id, "On another branch.")

    with counted_statements() as sent:
        page = " ".join(reader.get(path).content.decode().split())
    of_the_left = reader.get(f"{path}window/?from=95&to=99").content.decode()
    of_the_path = reader.get(f"{path}window/?from=10&to=30").content.decode()

    assert "Messages 99 to 100: off the active path</title>" in page
    assert re.search(r"Off the active path: <a href=\S+seq=99\S+>messages 99 to 100</a>", page)
    assert "are unreachable" not in page
    assert "Messages 99 to 99: off the active path" in of_the_left and "off the active path" not in of_the_path
    assert len(sent) <= MOST_OF_A_LINEAGE


def test_all_branches_are_drawn_however_often_the_head_moved(reader, db):
    conversation_id = a_conversation("The question.", *(f"Answer {n}." for n in range(101))).conversation_id
    # As if the head had been moved back to the question before each answer.
    moves = enumerate(range(3, 103), start=1)
    HeadMove.objects.bulk_create(
        HeadMove(conversation_id=conversation_id, number=number, at_seq=seq, head_seq=1) for number, seq in moves
    )
    Conversation.objects.filter(pk=conversation_id).update(moves=100)
    Branches.from_settings().move_head(conversation_id=conversation_id, head_seq=1)
    say(conversation_id, NewMessage(Role.ASSISTANT, "The last."))

    page = " ".join(reader.get(f"/w/default/conversations/{conversation_id}/lineage/").content.decode().split())
    transcript = reader.get(f"/w/default/conversations/{conversation_id}/").content.decode()

    assert "Messages 2 to 102: off the active path</title>" in page
    assert "are unreachable" not in page
    assert transcript.count("A branch begins here.") == 40


def test_the_picture_can_be_kept_as_a_file(reader, path):
    answer = reader.get(f"{path}window/?download=1")

    assert answer["Content-Type"] == "image/svg+xml"
    assert "attachment" in answer["Content-Disposition"]
    drawing = ET.fromstring(answer.content)
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert not list(drawing.iter("{http://www.w3.org/2000/svg}script"))


def test_a_summary_stands_beside_its_sources_with_what_it_kept_marked(reader, path, conversation_id):
    answer = reader.get(f"{path}{summaries(conversation_id)[-1]}/").content.decode()

    assert re.search(r"<mark>src/module_\d+\.py</mark>", answer)
    assert "Sources" in answer
    assert "<script>alert" not in answer and "<img src=x" not in answer


def test_a_twig_of_the_tree_opens_into_what_it_was_made_from(reader, path, conversation_id):
    deepest = summaries(conversation_id)[-1]

    answer = reader.get(f"{path}{deepest}/branch/").content.decode()

    described = RetrievalEngine.from_settings().describe(id=deepest)
    for source in described.sources:
        if source.startswith("sum_"):
            assert f'data-node="{source}"' in answer
    assert described.sources


def test_what_is_not_there_is_told_and_a_summary_of_another_conversation_is_not_shown_here(reader, conversation_id):
    here = f"/w/default/conversations/{a_conversation('one').conversation_id}/lineage/"
    statuses = {
        # What was mistyped counts as not given.
        "?from=x&to=-3&width=wide": 200,
        "?from=99999999999999999999&run=&width=1": 200,
        "?from=30&to=3": 400,
        "?run=run_none": 404,
        "sum_none/": 404,
        "sum_none/branch/": 404,
        f"{summaries(conversation_id)[0]}/": 404,
    }

    assert {piece: reader.get(here + piece).status_code for piece in statuses} == statuses
