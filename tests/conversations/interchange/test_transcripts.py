"""What agents have kept of their own sessions, line by line."""

from __future__ import annotations

import pytest

from conversations.formats import TRANSCRIPTS, transcript_of
from conversations.formats.claude_code import to_claude_code
from conversations.formats.codex import to_codex
from conversations.formats.pi import to_pi
from tests.conversations.real_data import needs_data, original_files, rows_of
from tests.conversations.records import as_stored


@needs_data
@pytest.mark.parametrize(
    ("agent", "transcript", "written", "fewest"),
    [
        ("claude_code", TRANSCRIPTS[0], to_claude_code, 1000),
        ("codex", TRANSCRIPTS[1], to_codex, 500),
        ("pi", TRANSCRIPTS[2], to_pi, 500),
    ],
    ids=["claude_code", "codex", "pi"],
)
def test_every_line_of_a_real_session_is_known_and_comes_back_key_for_key(agent, transcript, written, fewest):
    lines = [line for file in original_files(agent) for line in rows_of(file)]

    assert {transcript_of(line) for line in lines} == {transcript}
    said = [line for line in lines if transcript.holds_message(line)]
    assert len(said) > fewest
    for line in said:
        assert written(as_stored(transcript.message_of(line))) == line
