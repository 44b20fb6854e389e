from __future__ import annotations

from base64 import encodebytes
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.rendering import readable_source, render_summary
from conversations.types import Level, SummaryKind, SummaryRecord

SUMMARY = SummaryRecord(
    summary_id="sum_0123456789abcdef",
    conversation_id=1,
    kind=SummaryKind.LEAF,
    depth=0,
    content="They chose port 5433.",
    token_count=6,
    token_counter="estimate",
    created_at=datetime(2026, 1, 3, tzinfo=UTC),
    first_seq=5,
    last_seq=40,
    earliest_at=datetime(2026, 1, 1, 9, 30, tzinfo=UTC),
    latest_at=datetime(2026, 1, 2, tzinfo=UTC),
    source_count=36,
    descendant_count=36,
    source_tokens=900,
    level=Level.NORMAL,
    model="extractive",
    summary_hash="00",
    run_id="run_0",
)


def test_a_model_sees_what_a_summary_is_and_how_to_name_it():
    shown = ElementTree.fromstring(render_summary(SUMMARY))

    assert shown.tag == "summary"
    assert shown.attrib == {
        "id": "sum_0123456789abcdef",
        "kind": "leaf",
        "depth": "0",
        "messages": "5-40",
        "from": "2026-01-01T09:30Z",
        "to": "2026-01-02T00:00Z",
        "trust": "untrusted",
    }
    assert shown.text is not None
    assert shown.text.strip() == "They chose port 5433."


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(2026, 1, 1, 0, 30, 59, 999_999, tzinfo=timezone(timedelta(hours=2))), "2025-12-31T22:30Z"),
        (datetime(33, 4, 3, 15, 7, tzinfo=UTC), "0033-04-03T15:07Z"),
    ],
)
def test_times_are_shown_to_the_minute_as_they_are_in_greenwich(moment, shown):
    element = ElementTree.fromstring(render_summary(replace(SUMMARY, earliest_at=moment)))

    assert element.attrib["from"] == shown


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
def test_the_text_can_be_read_back_from_the_element(text: str):
    shown = ElementTree.fromstring(render_summary(replace(SUMMARY, content=text)))

    assert not list(shown)
    assert shown.text == f"\n{text}\n"


def test_base64_is_named_and_not_quoted_to_a_summarizer():
    text = readable_source("see data:image/png;base64," + "iVBORw0KGgo" * 100 + "== there")

    assert len(text) < 100
    assert "[base64, 1102 characters]" in text


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\\n", "\n    "])
def test_base64_in_lines_is_named_too(line_break):
    encoded = encodebytes(bytes(range(256)) * 4).decode().strip()

    text = readable_source(
        f"-----BEGIN-----{line_break}{encoded.replace(chr(10), line_break)}{line_break}-----END-----"
    )

    assert text.startswith(f"-----BEGIN-----{line_break}[base64, ")
    assert text.endswith("-----END-----")
    assert len(text) < 80


def test_lines_of_paths_are_not_base64():
    paths = "\n".join(f"/srv/{'archive/' * 8}{'x' * n}" for n in range(10))

    assert readable_source(paths) == paths
