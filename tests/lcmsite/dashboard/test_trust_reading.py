"""What the pages of trust say in words: explanations for all there is, differences to read, places to go to."""

from __future__ import annotations

import pytest

from integrity.invariants import INVARIANTS
from integrity.repairs.repair_plans import OPERATIONS
from lcmsite.dashboard.parts.differences import LONGEST, MOST_LINES, difference
from lcmsite.dashboard.parts.findings import README, effect_of, meaning_of, message_in, url_of
from lcmsite.dashboard.templatetags.lcm_tags import code_spans


def test_every_invariant_and_every_kind_of_repair_has_an_explanation_in_the_readme():
    readme = README.read_text()

    explanations = [*(meaning_of(each.code) for each in INVARIANTS), *map(effect_of, OPERATIONS)]
    assert all(len(each) > 15 and f"| {each} |" in readme for each in explanations)
    assert effect_of("close_job") == effect_of("expire_grant")


def test_names_in_an_explanation_stand_out_and_nothing_in_it_is_code():
    assert code_spans("`seq` <b>") == "<code>seq</code> &lt;b&gt;"


def texts(before: dict, after: dict) -> list[tuple[str, str]]:
    return [(line.tone, line.text) for line in difference(before, after).lines]


def test_a_value_goes_and_another_comes():
    assert texts({"total_tokens": 1234, "seen": None}, {"total_tokens": 1200, "seen": None}) == [
        ("out", "- total tokens: 1,234"),
        ("in", "+ total tokens: 1,200"),
        ("", "  seen: nothing yet"),
    ]


def test_of_a_list_only_what_changes_is_marked():
    assert texts({"sources": ["msg_1", "msg_2"]}, {"sources": ["msg_2", "msg_3"]}) == [
        ("heading", "sources: 2 → 2"),
        ("out", "- msg_1"),
        ("", "  msg_2"),
        ("in", "+ msg_3"),
    ]


def test_rows_that_go_and_come_are_told_beside_what_stays():
    before = {"items": 9, "hash": "ab"}
    row = {"ordinal": 4, "id": "msg_4", "tokens": 5}

    assert texts(before, {"removed": [], "removed_count": 0, "added": [row], "added_count": 3}) == [
        ("", "  items: 9"),
        ("", "  hash: ab"),
        ("in", "+ ordinal 4 · id msg_4 · tokens 5"),
        ("heading", "… and 2 more added"),
    ]


def test_what_has_no_before_only_comes():
    after = {"messages": [{"seq": 3, "entry_hash": "ff"}]}

    assert texts({"hash": "00"}, after) == [("out", "- hash: 00"), ("in", "+ messages: seq 3 · entry hash ff")]
    assert texts({"quarantined": False}, {"quarantined": True}) == [
        ("out", "- quarantined: no"),
        ("in", "+ quarantined: yes"),
    ]


def test_a_long_difference_is_cut_and_says_so():
    lines, more = difference({}, {"sources": [f"msg_{n}" for n in range(MOST_LINES + 30)]})

    assert (len(lines), more) == (MOST_LINES, 30)
    assert len(difference({"text": "x" * 9_000}, {})[0][0].text) < LONGEST + 10


@pytest.mark.parametrize(
    ("id", "url"),
    [
        ("msg_12", "/w/ws/integrity/place/?id=msg_12"),
        ("sum_ab12", "/w/ws/conversations/7/lineage/?node=sum_ab12"),
        ("file_ab12", "/w/ws/files/file_ab12/"),
        ("seq_33", "/w/ws/conversations/7/?seq=33"),
        ("seq_7_33", "/w/ws/conversations/7/?seq=33"),
        ("conv_7", "/w/ws/conversations/7/"),
        ("sum_<script>/../", "/w/ws/conversations/7/"),
        ("", "/w/ws/conversations/7/"),
    ],
)
def test_a_finding_leads_to_where_it_is(id, url):
    assert url_of("ws", 7, id) == url


def test_what_is_of_no_conversation_leads_nowhere():
    assert url_of("ws", None, "grant_1") is None


def test_a_part_leads_to_its_message():
    assert [message_in(id) for id in ("msg_5", "part_5_2", "sum_5", "msg_5; x", "msg_" + "9" * 30)] == [
        "msg_5",
        "msg_5",
        None,
        None,
        None,
    ]
