"""Search in the browser: every filter of grep, what is found marked and one click from where it stands."""

from __future__ import annotations

import re

import pytest

from compaction.engine import CompactionEngine
from compaction.hosts.branching import Branches
from conversations.files.large_files import LargeFileService
from conversations.scope import Scope
from integrity.retention.tiers import Retention
from retrieval.models import Grant
from tests.factories import a_conversation, a_tool_call, a_tool_result, a_workspace, say
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, page_of, shown_links

SEARCH = "/w/default/search/"
pytestmark = pytest.mark.usefixtures("harbour")


@pytest.fixture(scope="module")
def harbour(module_rows: None) -> int:
    """A compacted conversation about a harbour; its newest messages are raw."""
    texts = [f"Turn {n} about the harbour and {HOSTILE} its boats. " * 12 for n in range(1, 41)]
    conversation_id = a_conversation(*texts, session_id="harbour", title=HOSTILE).conversation_id
    messages = [a_tool_call("c1", path="boats.txt"), a_tool_result("c1", "seven lighthouses")]
    say(conversation_id, *messages)
    CompactionEngine.from_settings(Scope(a_workspace().pk)).compact(conversation_id=conversation_id)
    return conversation_id


def hits(page: str) -> list[str]:
    return re.findall(r'<article class="hit ([a-z]+)', page)


def test_what_is_found_is_marked_and_leads_to_transcript_and_lineage(harbour, reader):
    page = as_part(reader, f"{SEARCH}?query=harbour")

    assert "<mark>harbour</mark>" in page and HOSTILE not in page
    links = shown_links(page)
    assert any(re.fullmatch(rf"/w/default/conversations/{harbour}/\?seq=\d+#m\d+", link) for link in links)
    assert any(re.fullmatch(rf"/w/default/conversations/{harbour}/lineage/\?node=sum_\w+", link) for link in links)


def test_filters_without_words_are_said_to_find_nothing(reader):
    assert "filters alone find nothing" in page_of(reader, f"{SEARCH}?since=2026-01-01T09:00")
    assert "filters alone" not in page_of(reader, SEARCH)


def test_a_message_in_no_summary_leads_to_where_it_lies(harbour, reader):
    page = as_part(reader, f"{SEARCH}?query=lighthouses")

    assert hits(page) == ["message"] and "in context" in page
    assert f"/w/default/conversations/{harbour}/lineage/?from=2&to=82" in shown_links(page)


def test_every_filter_narrows(harbour, reader):
    found = {
        "query=harbour&scope=summaries&mode=full_text&conversation_id=&sort=": {"summary"},
        "query=harbour&depth=0": {"summary"},
        "query=harbour&roles=user&roles=assistant": {"message"},
        "query=harbour&roles=system": set(),
        "query=boats&part_types=tool": {"message"},
        "query=boats&tool_names=read_file,%20bash": {"message"},
        "query=harb.*r&mode=regex&scope=messages&sort=recency": {"message"},
        "query=harbour&since=2020-01-01T00:00&until=2021-01-01T00:00": set(),
    }

    assert {filters: set(hits(as_part(reader, f"{SEARCH}?{filters}"))) for filters in found} == found
    page = as_part(reader, f"{SEARCH}?query=harbour&scope=messages&conversation_id={harbour}&from_seq=3&to_seq=5")

    assert sorted(re.findall(r"message (\d+)</a>", page)) == ["3", "4", "5"]


def test_more_goes_on_where_the_page_ended(harbour, reader):
    first = as_part(reader, f"{SEARCH}?query=harbour&scope=messages&sort=recency")
    more = next(iter(re.findall(r'hx-get="([^"]+)"', first))).replace("&amp;", "&")
    second = as_part(reader, more)

    seqs = [re.findall(r"message (\d+)</a>", page) for page in (first, second)]
    assert len(seqs[0]) == 20 and len(seqs[1]) == 20
    assert sorted(map(int, seqs[0] + seqs[1])) == list(range(1, 41))
    assert "No more matches." in second


def test_a_relaxed_search_says_so(reader):
    a_conversation("one harbour", "one lighthouse", "one ferry")

    page = as_part(reader, f"{SEARCH}?query=harbour+lighthouse+ferry+gangway")

    assert "These texts contain any of the words" in page


def test_what_cannot_be_searched_for_is_told_beside_the_form(reader):
    for filters, why in (
        ("query=(&mode=regex", "regular expression"),
        ("query=x&from_seq=3", "name one conversation"),
        ("query=x&since=yesterday", "ISO 8601"),
        ("query=x&cursor=nonsense", "cursor"),
    ):
        answer = reader.get(f"{SEARCH}?{filters}", headers={"HX-Request": "true"})
        page = answer.content.decode()
        assert answer.status_code == 200 and 'role="alert"' in page and why in page
    assert 'name="query"' in page_of(reader, f"{SEARCH}?query=(&mode=regex")


def test_what_is_cold_is_searched_on_request(harbour, reader):
    Retention.from_settings(Scope(a_workspace().pk)).archive(conversation_id=harbour)

    warm = as_part(reader, f"{SEARCH}?query=lighthouses&conversation_id={harbour}")
    cold = as_part(reader, f"{SEARCH}?query=lighthouses&conversation_id={harbour}&cold=true")

    assert "are cold" in warm and "cold=true" in warm
    assert hits(cold) == ["message"]


def test_a_file_is_found_by_its_name(harbour, reader):
    LargeFileService.from_settings(Scope(a_workspace().pk)).store(
        conversation_id=harbour, content=b"a,b\n1,2\n", file_name=f"{HOSTILE}lighthouses.csv"
    )

    page = as_part(reader, f"{SEARCH}?query=lighthouses&scope=files")

    assert hits(page) == ["file"] and HOSTILE not in page
    assert any(link.startswith("/w/default/files/file_") for link in shown_links(page))


def test_a_page_with_a_question_asks_for_the_answer_by_itself(reader):
    page = reader.get(f"{SEARCH}?query=harbour&scope=messages").content.decode()

    [address] = re.findall(r'hx-get="([^"]+)" hx-trigger="load"', page)
    found = as_part(reader, address.replace("&amp;", "&"))
    assert hits(found) == ["message"] * 20 and "<html" not in found


ASK = "/w/default/ask/"


def test_a_question_is_answered_with_links_to_what_it_relies_on(harbour, reader):
    page = reader.post(ASK, {"question": "Which boats are in the harbour?", "conversation_id": harbour})
    shown = page.content.decode()

    assert page.status_code == 200 and "Relies on" in shown and "about the harbour" in shown
    assert any("/integrity/place/?id=msg_" in link or "node=sum_" in link for link in shown_links(shown))
    assert HOSTILE not in shown and 'value="Which boats' in shown
    assert Grant.objects.exists()


def test_a_question_that_cannot_be_asked_is_refused_beside_the_form_and_grants_nothing(harbour, reader):
    for given in ({"question": " "}, {"question": "Boats?", "conversation_id": "987654321"}):
        answer = reader.post(ASK, given)
        page = answer.content.decode()
        assert answer.status_code in (400, 404) and 'role="alert"' in page and 'name="question"' in page
    # What was chosen stays chosen, though others were used later.
    assert '<option value="987654321" selected>' in page
    assert reader.get(f"{ASK}?question=Boats").status_code == 200
    assert not Grant.objects.exists()


ABOUT = "/w/default/about/"


def test_everything_about_a_name_comes_with_links_to_each_id(harbour, reader):
    form = reader.get(f"{ABOUT}?entity=seven+lighthouses&max_tokens=300").content.decode()
    [address] = re.findall(r'hx-get="([^"]+)" hx-trigger="load"', form)
    found = as_part(reader, address.replace("&amp;", "&"))
    narrowed = as_part(reader, f"{ABOUT}?entity=harbour&aspect=boats&question=Which+boats?&max_tokens=400")

    assert address.startswith(ABOUT) and 'value="seven lighthouses"' in form
    assert hits(found) == ["tool"] and "seven lighthouses" in found and "All 1 text:" in found
    assert any(link.startswith("/w/default/integrity/place/?id=msg_") for link in shown_links(found))
    assert hits(narrowed) and "There is more" in narrowed and HOSTILE not in narrowed


def test_about_a_name_that_cannot_be_given_the_page_says_why(reader):
    for given, words in (
        ("entity=zeppelin", "Nothing contains “zeppelin”"),
        ("entity=harbour&max_tokens=many", 'role="alert"'),
        ("entity=harbour&conversation_id=987654321", 'role="alert"'),
    ):
        assert words in as_part(reader, f"{ABOUT}?{given}")
    assert "Enter a name" in page_of(reader, ABOUT)


def test_branches_that_were_left_are_found_where_they_are_asked_for(harbour, reader):
    conversation_id = a_conversation("a heron stands", "a heron flies").conversation_id
    Branches.from_settings().move_head(conversation_id=conversation_id, head_seq=1)

    active = as_part(reader, f"{SEARCH}?query=heron")
    both = as_part(reader, f"{SEARCH}?query=heron&branch=all")

    assert (len(hits(active)), len(hits(both))) == (1, 2)
