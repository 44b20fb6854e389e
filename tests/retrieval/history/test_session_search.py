"""Full text over session, arc and epoch summaries."""

import pytest

from conversations.errors import Invalid, NotFound
from tests.pasts import a_project, a_session, a_session_summary


def found(history, query, **asked):
    return [match.id for match in history.grep_sessions(query=query, **asked).matches]


def test_a_match_says_its_project_session_and_where_the_words_are(history, past):
    matches = history.grep_sessions(query="5432 harbour")

    best = matches.matches[0]
    assert (best.id, best.kind, best.project) == (past.sessions[2].pk, "session", "harbour")
    assert (best.session_id, best.conversation_id) == ("session-of-2", past.sessions[2].conversation_id)
    shown = [best.snippet.text[begin:end] for begin, end in best.snippet.highlights]
    assert shown == ["5432", "harbour"]
    assert matches.relaxed and best.score > matches.matches[1].score


def test_enough_texts_with_every_word_are_the_answer_alone(history, past):
    matches = history.grep_sessions(query="port chosen")

    assert {match.id for match in matches.matches} == {session.pk for session in past.sessions}
    assert not matches.relaxed


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"two ports"', ["arc 0"]),
        ("ports -epoch", ["arc 0", "session 0", "session 1", "session 2", "session 3", "session 4"]),
        ("epoch or followed", ["epoch", "arc 1"]),
        ("zeppelin", []),
    ],
)
def test_phrases_alternatives_and_exclusions_hold(history, past, query, expected):
    names = {each.pk: f"session {n}" for n, each in enumerate(past.sessions)}
    names |= {each.pk: f"arc {n}" for n, each in enumerate(past.arcs)} | {past.epoch.pk: "epoch"}

    assert sorted(names[id] for id in found(history, query)) == sorted(expected)


def test_project_and_kind_narrow_a_search(history, past):
    other = a_session_summary(a_session(a_project("other")).conversation_id, "A port elsewhere.")

    assert other.pk in found(history, "port")
    assert other.pk not in found(history, "port", project="harbour")
    assert found(history, "port", kind="arc") == [past.arcs[0].pk]
    with pytest.raises(NotFound):
        found(history, "port", project="no such")


def test_pages_give_each_match_once(history, past):
    whole = found(history, "port")
    matches, offset = [], 0
    while offset is not None:
        page = history.grep_sessions(query="port", limit=2, offset=offset)
        matches += [match.id for match in page.matches]
        offset = page.next_offset

    assert matches == whole and len(whole) == 7


def test_what_was_superseded_is_not_found(history, past):
    a_session_summary(past.sessions[4].conversation_id, "Something else.", supersedes=past.sessions[4])

    assert found(history, "5434") == []


def test_a_query_without_a_word_is_refused(history, past):
    with pytest.raises(Invalid, match="no word"):
        history.grep_sessions(query="the -port")
