"""Regular expressions in PostgreSQL's words: what matches in Python matches there."""

from __future__ import annotations

import re

import pytest
from django.db import DataError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.errors import Invalid
from retrieval.search.patterns.pattern_translation import Pattern, literally, translated

TEXTS = [
    "foo", "a foo b", "foobar", "xfoo", "abab", "a.b", "a\nb", "FOO", "aab", "AB", "[", "x]", "x.py", "def x", "  def",
    "line\ndef y\n", "555-1234", "é", "caféé", "/path/to", "foo-bar", "a_b", "", "aaab", "b", '{"a": 1}', "xyzzy",
    "xfoo foo", "foobaz foobar", "xb\nb", "a1 b2 a1b2",
]  # fmt: skip
PATTERNS = [
    r"\bfoo\b", r"\Bfoo", r"(?i)FOO", r"a+?b", r"foo(?=bar)", r"foo(?!bar)", r"(?<=x)foo", r"(?<!x)foo",
    r"(?P<q>ab)(?P=q)", r"(a)(b)\1\2", r"(?:(a))(b)\2", r"[\w.-]+\.py", r"\x41\u0042", r"a{,3}b", r'{"a": 1}', r"[[]",
    r"[]a]", r"[^]a]", r"x\.py$", r"^def ", r"(?s)a.b", r"a.b", r"foo|bar", r"\d{3}-\d{4}", r"[\d\s]", r"[\D]",
    r"\Aab", r"b\Z", r"(?x) a b # c", r"\/path\/to", r"(?#c)ab", r"((((a))))\4", r"(?m)^a$", r"é+", r"\é", r"x?y*z+",
    r"a{2}b", r"[\x41-\x43]", r"\.", r"[\]]", r"a|", r"",
]  # fmt: skip


def matches(pattern: str, text: str) -> bool:
    return is_matched(translated(pattern), text)


def is_matched(found: Pattern, text: str) -> bool:
    """Whether PostgreSQL matches it; then the text has its literal."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s ~ %s", [text, found.expression])
        [is_match] = cursor.fetchone()
    assert not is_match or (found.literal or "") in text
    return is_match


# What Python may one day read otherwise, it reads today as PostgreSQL does.
@pytest.mark.sampled(15)
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
@pytest.mark.django_db
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_the_same_texts_as_in_python(pattern):
    expected = [text for text in TEXTS if re.search(pattern, text, re.MULTILINE)]

    assert [text for text in TEXTS if matches(pattern, text)] == expected


_PIECES = st.sampled_from([
    "a", "b", "foo", ".", r"\.", r"\b", r"\d", r"\w+", "a*", "b+?", "(a|b)", "(?:ab)?", "[ab]", "[^a]",
    "x{1,2}", "^", "$",
])  # fmt: skip


@pytest.mark.django_db
@settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PIECES, min_size=1, max_size=5), st.text(alphabet="abfox.1 \n", max_size=12))
def test_patterns_put_together_from_pieces_match_as_in_python(pieces, text):
    pattern = "".join(pieces)
    try:
        expected = re.search(pattern, text, re.MULTILINE) is not None
    except re.error:
        return

    try:
        with transaction.atomic():
            found = matches(pattern, text)
    except DataError:
        return  # valid in Python alone, such as ^*: refused, never misread

    # Before a newline at the very end Python's $ matches too; PostgreSQL's, line by line, does as well.
    assert found == expected


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{L}", r"\X", "(?>a)", "a++", "a*+", "(?i:a)b", "b(?i)a", "(?-i)a", "(?(1)a|b)", "(?R)", "[a", "a\\", r"\0",
        r"\N{DASH}", r"\1", r"(a)\2", r"(?P=q)", r"(?P=²)", r"(?=(a))\1", r"\x4", r"\ud800", r"\x00", r"\Qa\E", "(?|a)",
        r"\x{41", r"[\x{41 ", r"\x{}",
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_with_a_sentence(pattern):
    with pytest.raises(Invalid) as refusal:
        translated(pattern)

    assert refusal.value.code == "bad_pattern"
    assert refusal.value.detail.endswith(".")


@given(st.text(max_size=100))
def test_every_text_is_translated_or_refused(text):
    try:
        translated(text)
    except Invalid as refusal:
        assert refusal.code == "bad_pattern"


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("error: timeout", "error: timeout"),
        (r"\bgetSummary\(", "getSummary("),
        ("foo.*barbaz", "barbaz"),
        ("colou?red", "colo"),
        ("abc+def", "abc"),
        ("abcd(?#or not)?e", "abc"),
        ("foo|bar", None),
        ("(foo)bar|baz", None),
        ("(?i)error", None),
        ("(?x)abc def", None),
        ("(foobar)?", None),
        ("ab", None),
        (r"src\/store\/x", "src/store/x"),
    ],
)
def test_a_literal_that_every_match_contains_is_known(pattern, literal):
    assert translated(pattern).literal == literal


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["->", "a.b*c", "to be or not to be", "[x](y)", "\\d", "🎉 ok", "50%"])
def test_a_text_can_be_sought_as_it_stands(text):
    assert is_matched(literally(text), f"before {text.upper()} after")
