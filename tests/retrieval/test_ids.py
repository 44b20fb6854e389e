"""What an id names, by its form alone."""

from __future__ import annotations

import pytest

from retrieval.ids import Named, named, names_in, without
from retrieval.types import ItemKind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("sum_9f86d081884c7d65", ItemKind.SUMMARY),
        ("file_00ff", ItemKind.FILE),
        ("run_00ff", ItemKind.RUN),
        ("msg_12", ItemKind.MESSAGE),
        ("conv_0", ItemKind.CONVERSATION),
    ],
)
def test_each_kind_has_its_form(text, kind):
    assert named(text) == Named(kind, text)


@pytest.mark.parametrize(
    "text",
    ["", "msg_", "msg_01", "msg_-1", "msg_1 ", " msg_1", "msg_1\n", "msg_\u0661", "msg_1\u00b2", "conv_x", "SUM_1"],
)
def test_what_is_written_otherwise_is_no_id(text):
    assert named(text) is None


def test_ids_in_a_text_come_in_their_order_each_once():
    text = (
        'see <summary id="sum_ab">, (msg_7), 見msg_12。 msg_7! not xmsg_3, msg_4x, msg_05, msg_6\u00b2 or msg_8\uff11'
    )

    assert [each.id for each in names_in(text)] == ["sum_ab", "msg_7", "msg_12"]


def test_ids_are_taken_out_of_a_text_and_nothing_else():
    assert without("msg_1, msg_12 and xmsg_1", {"msg_1"}, instead="?") == "?, msg_12 and xmsg_1"
