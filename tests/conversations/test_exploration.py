"""What is said of a file: right for every kind, short for every size, there for every file that was made to hurt."""

from __future__ import annotations

import io
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.content.lossless_values import is_storable
from conversations.files.exploration import subprocess_parsers
from conversations.files.exploration.explorer import explore, mime_type_of
from conversations.files.exploration.glance import MOST_CHARACTERS, Seen
from tests.conversations.file_samples import HOSTILE, KINDS, LIES


def explored(content, name="", mime_type="", **options):
    # As the store has it, open for reading and writing.
    with tempfile.SpooledTemporaryFile() as file:
        seen = Seen(file, name, mime_type)
        for start in range(0, len(content), 1_000_000):
            seen.add(content[start : start + 1_000_000])
            file.write(content[start : start + 1_000_000])
        return explore(seen, **options)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_is_told_by_its_shape(kind):
    name, content, told = KINDS[kind]

    summary = explored(content, name)

    assert [each for each in told if each not in summary] == [], summary
    assert "could not be explored" not in summary
    assert "is called" not in summary


# The first are known by their names alone; the last are among the lies, too.
OTHERWISE_KNOWN = {"YAML", "Python", "JavaScript", "TSV", "empty"} | {"PDF", "zip", "HTML"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", sorted(set(KINDS) - OTHERWISE_KNOWN))
def test_most_files_are_known_without_a_name(kind):
    _, content, told = KINDS[kind]

    assert explored(content).startswith(told[0])


@pytest.mark.sampled(8)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_made_to_hurt_is_told_in_a_few_lines_and_in_time(kind):
    name, content, told = HOSTILE[kind]

    summary = explored(content(), name)

    assert [each for each in told if each not in summary] == [], summary[:1000]
    assert len(summary) <= MOST_CHARACTERS + 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_about_what_it_is_is_named_as_such(lie):
    name, content, told = LIES[lie]

    summary = explored(content, name)

    assert f"It is labelled {told}" in summary


def test_the_type_that_came_with_a_file_counts_where_its_name_says_nothing():
    assert "It is labelled PDF, but" in explored(b"text", "a", "application/pdf")
    assert explored(b"a,b\n", "", "text/csv; charset=utf-8").startswith("table")
    assert "It is labelled image, but" in explored(b"text", "", "image/x-unheard-of")


def test_a_long_log_is_told_by_its_beginning_and_its_end():
    lines = [f"2026-01-01 10:00:00 INFO step {n}\n" for n in range(100_000)]

    summary = explored("".join(lines).encode())

    assert "100,000 lines" in summary
    assert "INFO step 0\n" in summary
    assert "INFO step 99999" in summary
    assert "in the first" in summary


def test_a_long_table_says_how_much_of_it_was_looked_at():
    content = b"id,name\n" + b"".join(b"%d,Ada\n" % n for n in range(300_000))

    summary = explored(content, "a.csv")

    assert "300,000 rows at most" in summary
    assert "of the first 19,999 rows" in summary


def test_whoever_says_what_a_text_says_is_asked_and_may_fail():
    text = b"One sentence after the other. " * 200

    def fail(text, tokens):
        raise RuntimeError("no idea")

    assert "in its own words:\nthe gist" in explored(text, gist=lambda text, tokens: "the gist")
    assert "RuntimeError, no idea" in explored(text, gist=fail)
    assert explored(text, gist=fail).startswith("text, 6,000 bytes, 1 line\n")


def test_a_parser_that_takes_too_long_is_given_up(monkeypatch):
    # Less than it takes to begin: which page keeps a parser busy differs from one Python to the next.
    monkeypatch.setattr(subprocess_parsers, "SECONDS", 0.01)

    summary = explored(b"<!DOCTYPE html><h1>A page</h1>", "a.html")

    assert summary == "HTML, 30 bytes, 1 line\nIt could not be explored: its parser timed out after 0.01 seconds."


def test_a_damaged_image_is_described_in_the_same_words_each_time():
    summary = explored(b"\x89PNG\r\n\x1a\n", "a.png")

    assert summary.startswith("image, 8 bytes\nIt could not be explored: ")
    assert "cannot identify image file" in summary and "0x" not in summary


@pytest.mark.parametrize(
    ("name", "content", "given", "expected"),
    [
        ("s.csv", b"a,b\n1,2\n3,4\n", None, "text/csv"),
        ("s.csv", b"a,b\n1,2\n3,4\n", "application/octet-stream", "text/csv"),
        (None, b"a,b\n1,2\n3,4\n", None, "text/csv"),
        (None, b'{"a": [1, 2]}', None, "application/json"),
        ("rows", b'{"a": 1}\n{"a": 2}\n{"a": 3}\n', None, "application/x-ndjson"),
        ("notes", b"Nothing but words.", None, "text/plain"),
        ("main.ts", b"export const port: number = 5433;\n", None, "text/plain"),
        ("main.py", b"import os\n", None, "text/x-python"),
        ("page.bin", b"%PDF-1.7 ...", "application/octet-stream", "application/pdf"),
        ("a.png", b"\xff\xd8\xff\xe0JFIF", None, "image/jpeg"),
        ("song.mp3", b"ID3\x00\x01\x02", None, "audio/mpeg"),
        # A name that lies, what nobody knows, and what the caller says.
        ("a.csv", b"\x00\x01\x02\x03", None, None),
        ("a.dat", b"\x00\x01\x02\x03", "application/octet-stream", "application/octet-stream"),
        ("s.csv", b"a,b\n1,2\n", "x/y", "x/y"),
        ("empty", b"", None, None),
    ],
)
def test_a_mime_type_that_says_nothing_is_guessed_from_content_and_name(name, content, given, expected):
    seen = Seen(io.BytesIO(content), name or "", given or "")
    seen.add(content)

    assert mime_type_of(seen) == expected


@given(st.binary(max_size=300), st.integers(1, 50))
def test_what_is_seen_of_a_file_is_the_same_however_its_bytes_arrive(content, size):
    seen = Seen(io.BytesIO(content))

    for start in range(0, len(content), size):
        seen.add(content[start : start + size])

    lines = content.count(b"\n") + (content[-1:] not in (b"", b"\n"))
    assert (seen.head, seen.tail, seen.lines, seen.byte_size) == (content, content, lines, len(content))


@given(
    st.one_of(st.binary(max_size=600), st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass"))),
    st.sampled_from(["a.json", "a.jsonl", "a.yaml", "a.csv", "a.md", "a.xml", "a.py", "a.go", "a.log", "a.zip", "a.tar",
                     "a.gz", "a", "../a", ""]),
    st.sampled_from([b"", b"{", b"[1,", b"---\n", b"PK\x03\x04", b"\x1f\x8b", b"<?xml", b"a,b\n1,2\n"]),
)  # fmt: skip
def test_no_file_at_all_keeps_it_from_answering(content, name, beginning):
    summary = explored(beginning + content, name)

    assert 0 < len(summary) <= MOST_CHARACTERS + 2
    assert is_storable(summary)
