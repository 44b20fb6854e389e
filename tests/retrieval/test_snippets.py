"""The piece of a text that shows why it was found."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval.search.snippets import WIDTH, Needles, around, folded_in_place, passage, snippet


def highlighted(content: str, *needles: str) -> list[str]:
    shown = snippet(content, Needles.of(dict.fromkeys(needles, 1.0)))
    return [shown.text[begin:end] for begin, end in shown.highlights]


def test_a_short_text_is_shown_whole_and_of_places_worth_the_same_the_first():
    for content in ("The port is 5433.", "The port" + " filler" * 100 + " port two" + " filler" * 100 + " port three"):
        shown = snippet(content, Needles.of({"port": 1.0}))

        assert (shown.text, shown.offset, shown.highlights) == (content[:WIDTH], 0, ((4, 8),))


def test_the_densest_cluster_is_shown():
    content = "port " + "filler " * 200 + "the docker port is open " + "filler " * 200

    shown = snippet(content, Needles.of({"port": 1.0, "docker": 2.0}))

    assert "docker port" in shown.text
    assert content[shown.offset :].startswith(shown.text)


def test_a_rare_word_is_worth_more_than_a_common_one_said_often():
    content = "common common common " + "filler " * 100 + " rare " + "filler " * 100

    assert highlighted(content, "common") == ["common"] * 3
    assert "rare" in snippet(content, Needles.of({"common": 0.1, "rare": 5.0})).text


@pytest.mark.parametrize("alike", [("once", "twice"), ("twice", "once")])
def test_of_places_with_words_worth_the_same_the_fullest_is_shown_whichever_was_looked_for_first(alike):
    content = "rare " * 20 + "filler " * 50 + "rare once" + " filler" * 50 + " rare twice twice" + " filler" * 50

    shown = snippet(content, Needles.of({"rare": 4.0, **dict.fromkeys(alike, 1.0)}))

    assert [shown.text[begin:end] for begin, end in shown.highlights] == ["rare", "twice", "twice"]


@pytest.mark.parametrize(
    ("content", "needles", "expected"),
    [
        ("src/upserve.py", ["src", "upserve", "src/upserve", "src/upserve.py"], ["src/upserve.py"]),
        ("src/upserve.py", ["src/upserve", "upserve.py"], ["src/upserve"]),
        ("src/upserve.py", ["src", "upserve.py", "py"], ["src", "upserve.py"]),
    ],
)
def test_of_what_lies_over_each_other_the_first_and_longest_is_shown(content, needles, expected):
    assert highlighted(content, *needles) == expected
    assert highlighted(content, *reversed(needles)) == expected


def test_what_is_longer_than_a_piece_is_shown_as_far_as_it_goes():
    assert snippet("port " * 20 + "x" * 300, Needles.of({"x" * 300: 1.0})).highlights == ((0, WIDTH),)


@pytest.mark.parametrize(
    ("content", "lexeme", "expected"),
    [
        ("summarizing summaries", "summari", ["summarizing", "summaries"]),
        ("she was hoping", "hope", ["hoping"]),
        ("a study, studied", "studi", ["study", "studied"]),
        ("stating statesmanly statecraftily staticky", "state", ["stating", "statesmanly"]),
        ("the stateOfAllMachines, the statEnginesOfAll", "state", ["state", "stat"]),
        ("call getSummary(x)", "summari", ["Summary"]),
        ("call getSummary(x)", "get", ["get"]),
        ("MAX_WIDTH", "width", ["WIDTH"]),
        ("the article", "art", []),
        ("das Café, cafés", "cafe", ["Café", "cafés"]),
        ("使用数据库连接", "数据", ["数据"]),
        ("PostgreSQL数据库", "数据", ["数据"]),
        ("a supporter", "port", []),
        ("умиротворить мир", "мир", ["мир"]),
    ],
)
def test_words_are_found_by_their_lexemes(content, lexeme, expected):
    assert highlighted(content, lexeme) == expected


def test_without_a_needle_in_it_the_beginning_is_shown():
    assert snippet("x" * 1000, Needles.of({"nowhere": 1.0})).text == "x" * WIDTH


@given(st.text(max_size=600), st.lists(st.text(max_size=8), max_size=4))
def test_a_snippet_is_a_piece_of_the_text_and_its_highlights_lie_in_it(content, needles):
    shown = snippet(content, Needles.of(dict.fromkeys(needles, 1.0)))

    assert content[shown.offset : shown.offset + len(shown.text)] == shown.text
    assert len(shown.text) <= WIDTH
    assert all(0 <= begin < end <= len(shown.text) for begin, end in shown.highlights)


@given(st.text(max_size=300), st.data())
def test_a_known_place_is_shown_and_highlighted(content, data):
    begin = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(begin, len(content)))

    shown = around(content, 1000 + begin, 1000 + end, offset=1000)

    assert content[shown.offset - 1000 :].startswith(shown.text)
    for first, last in shown.highlights:
        assert content[begin:end].startswith(shown.text[first:last])


@pytest.mark.thorough
@given(st.text(max_size=200))
def test_folding_in_place_moves_nothing(text):
    assert folded_in_place(text) == "".join(map(folded_in_place, text))
    assert len(folded_in_place(text)) == len(text)


def test_of_a_long_text_the_passage_is_shown_that_it_is_ranked_by():
    filler = " of no interest" * 40
    apart = "port " + "filler " * 20 + "docker " + "filler " * 20 + "is open"
    content = f"the port of docker{filler}. {apart}{filler}"

    shown = snippet(content, Needles.of({"port": 1.0, "docker": 1.0, "open": 1.0}))

    assert content.index(apart) <= shown.offset + shown.highlights[0][0] < content.index(apart) + len(apart)


@given(st.text(st.sampled_from("ab. \n"), max_size=600), st.integers(10, 100))
def test_a_passage_holds_what_a_snippet_shows_and_is_not_much_longer(content, width):
    needles = Needles.of({"ab": 1.0})
    shown = snippet(content, needles, width=width)

    begin, end = passage(content, needles, width=width)

    assert 0 <= begin <= shown.offset
    assert shown.offset + len(shown.text) <= end <= len(content)
    assert end - begin <= 2 * width


WORDS = ("rare", "seldom", "usual", "often")
FILLER = "filler " * 20


@given(
    st.lists(st.sampled_from([*WORDS, *[FILLER] * 4]), min_size=5, max_size=60),
    st.lists(st.integers(1, 9).map(float), min_size=len(WORDS), max_size=len(WORDS)),
)
@example(["rare", *[FILLER] * 4, "seldom", "usual", "often"], [9.0, 5.0, 3.0, 2.0])
def test_no_other_piece_of_that_width_has_words_worth_more(parts, numbers):
    content, worths = " ".join(parts), dict(zip(WORDS, numbers, strict=True))
    found = [(each.start(), each.end(), each[0]) for each in re.finditer("|".join(WORDS), content)]
    pieces = [{word for start, end, word in found if begin <= start and end <= begin + 400} for begin, _, _ in found]

    shown = snippet(content, Needles.of(worths), width=400)

    held = {shown.text[begin:end] for begin, end in shown.highlights}
    best = max((sum(map(worths.__getitem__, piece)) for piece in pieces), default=0)
    assert sum(worths.get(word, 0) for word in held) >= best


def test_a_passage_is_of_whole_sentences():
    content = "Of other things. " * 20 + "The port of docker is open. " + "Of other things. " * 20

    begin, end = passage(content, Needles.of({"port": 1.0}), width=60)

    assert content[begin:end].startswith(("Of other things. ", "The port of docker"))
    assert content[begin:end].rstrip().endswith(("Of other things.", "is open."))
