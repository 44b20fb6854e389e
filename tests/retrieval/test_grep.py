"""Full text search over messages and summaries."""

from __future__ import annotations

from itertools import product

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from conversations.errors import Invalid
from conversations.scope import Scope
from conversations.types import NewMessage, Role, SummaryRecord
from retrieval.engine import RetrievalEngine
from retrieval.policy import RetrievalPolicy
from retrieval.search.grep import Grep
from retrieval.search.query import compiled_query
from retrieval.types import ItemKind
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say
from tests.retrieval.lineages import engine
from tests.statements import analyze, counted_statements
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

FILLER = ["We talked about the weather.", "Lunch was good today.", "The meeting moved again."]


def texts_found(query: str, **options) -> list[str]:
    return [match.snippet.text for match in engine().grep(query=query, **options).matches]


def test_a_word_finds_the_message_that_has_it_and_shows_where():
    conversation = a_conversation(*FILLER, "The database listens on port 5433.", *FILLER)

    result = engine().grep(query="database port", conversation_id=conversation.conversation_id)

    match = result.matches[0]
    assert (match.kind, match.first_seq, match.role, match.active) == (ItemKind.MESSAGE, 4, Role.ASSISTANT, True)
    assert [match.snippet.text[begin:end] for begin, end in match.snippet.highlights] == ["database", "port"]
    assert match.id.startswith("msg_")


def test_sessions_and_quarantines_of_matches_take_no_statement_of_their_own():
    talks = [a_conversation("A lighthouse stands there.", *FILLER, session_id=f"talk {name}") for name in "abc"]
    summary = a_summary_of(a_store(), talks[0].conversation_id, seqs=[1, 2], content="About a lighthouse.")

    for sort in ("relevance", "recency"):
        with counted_statements() as sent:
            found = engine().grep(query="lighthouse", sort=sort).matches

        assert {(match.conversation_id, match.session_id) for match in found} == {
            (talk.conversation_id, talk.session_id) for talk in talks
        }
        assert summary.summary_id in [match.id for match in found]
        assert sum("session_id" in statement or "quarantined" in statement for statement in sent) == 1


DATABASE = "Which database did we choose for storage?"
FRAMES, PAGES = ([f"see src/{path}:{line}" for line in range(3)] for path in ("reader/frames.py", "writer/pages.py"))
# What a search finds: the query, what is said before and behind what is found, and whether the query is relaxed.
SEARCHES = {
    "only the texts with every word where there are enough": (
        "docker compose", [], [f"docker compose file {n}" for n in range(6)], ["only docker", "only compose"], False
    ),
    "a word of a query of one in that form alone": ("win", ["We won the cup."], ["We win the cup."], FILLER, False),
    "a word before a NUL": ("alpha", [], ["alpha\0bravo charlie\0 delta"], FILLER, False),
    "a word behind a NUL": ("bravo", [], ["alpha\0bravo charlie\0 delta"], FILLER, False),
    "a word between two NULs": ("charlie", [], ["alpha\0bravo charlie\0 delta"], FILLER, False),
    "the text beside the words of a script without spaces": (
        "服务器端口是哪个", FILLER[:1], [*FILLER[1:], "服务器的端口是多少", "7171"], [], True
    ),
    "the parts of a compound that is nowhere": (
        "loadUserSession", [], ["We load the user first.", "The session comes later."], FILLER, True
    ),
    "the answer beside a phrase of the question": (
        'What did Ann take away from "Little Women"?', FILLER[:1],
        [*FILLER[1:], 'I read "Little Women".', "And what did you take away?", "Hope."], FILLER * 4, True
    ),
    "any of two paths and not all of their directory": (
        "src/reader/frames.py src/writer/pages.py", [], FRAMES + PAGES, [f"the reader said {n}" for n in "123"], True
    ),
    "some parts of a path that is nowhere": ("src/reader/frames.py", [], ["the reader of frames"], FILLER, True),
}  # fmt: skip


@pytest.mark.parametrize(("query", "before", "found", "behind", "is_relaxed"), SEARCHES.values(), ids=SEARCHES)
def test_a_search_finds(query, before, found, behind, is_relaxed):
    conversation = a_conversation(*before, *found, *behind)

    result = engine().grep(query=query, conversation_id=conversation.conversation_id)

    assert {match.first_seq - len(before) for match in result.matches} == set(range(1, len(found) + 1))
    assert result.relaxed == is_relaxed


@pytest.mark.parametrize(
    ("before", "question", "answer"),
    [
        ([], DATABASE, "SQLite, because it is small."),
        # A question is found before the caption of a picture, too, and its answer behind it.
        (["It will be storage."], f"{DATABASE} [image: a shelf]", "SQLite, it is small."),
    ],
)
def test_a_question_finds_the_answer_that_shares_no_word_with_it(before, question, answer):
    before = [*FILLER, *before]
    conversation = a_conversation(*before, question, answer, *FILLER * 4)

    result = engine().grep(query=DATABASE, conversation_id=conversation.conversation_id, limit=2)

    assert {match.first_seq - len(before) for match in result.matches} == {1, 2}


def test_of_a_question_pages_that_hold_every_word_do_not_hide_a_line_that_holds_some():
    page = f"The harbour is closed. {'Much else is of note here. ' * 60} The rent of a boat has risen."
    conversation = a_conversation(*(text for _ in range(6) for text in (page, *FILLER)), "The rent is 90 euros.")

    result = engine().grep(query="What is the rent in the harbour?", conversation_id=conversation.conversation_id)

    assert result.relaxed
    assert result.matches[0].snippet.text == "The rent is 90 euros."


def test_a_word_that_texts_repeat_counts_more_than_one_as_rare_that_each_has_once():
    once, repeated = "They suggest some water.", "A kumquat is a kumquat, and this kumquat is here."
    others = [text for _ in range(3) for text in (once, *FILLER, repeated, *FILLER)]
    conversation = a_conversation("That is one kumquat.", *FILLER * 3, "I suggest red tea.", *FILLER * 3, *others)

    matches = engine().grep(query="What do we suggest for the kumquat?", conversation_id=conversation.conversation_id)

    order = [match.snippet.text for match in matches.matches]
    assert order.index("That is one kumquat.") < order.index("I suggest red tea.")


def test_a_standing_instruction_comes_before_what_is_said_once_in_the_same_words():
    page = f"The schema has a table of shelves. {'Much else is of note here. ' * 60}"
    asked = ["Is a shelf in the schema?", page, "Thanks.", "Good."] * 4
    instruction, remark = "Always draw the schema.", "I have drawn the schema."
    apart = FILLER * 4
    conversation = a_conversation(*asked, *apart, instruction, *apart, "Fine.", remark, *apart)

    matches = engine().grep(query="Can you describe the schema?", conversation_id=conversation.conversation_id).matches

    order = [match.snippet.text for match in matches]
    assert order.index(instruction) < order.index(remark)


def test_of_texts_that_hold_every_word_one_behind_a_question_comes_before_one_behind_a_statement():
    answer, apart = "A red boat is in the harbour.", FILLER * 6
    asked = ["Where is a red boat?", answer]
    said = ["Here was a red boat.", answer]
    a_conversation(*asked, *apart, *said, *apart, answer)

    matches = engine().grep(query="red boat", scope="messages").matches

    behind_a_question, behind_a_statement, alone = 2, len(asked) + len(apart) + 2, 2 * (len(asked) + len(apart)) + 1
    answers = [match.first_seq for match in matches if match.snippet.text == answer]
    assert answers == [behind_a_question, behind_a_statement, alone]


def test_with_too_few_texts_that_hold_every_word_any_word_will_do_and_the_answer_says_so():
    a_conversation("docker compose", *FILLER, "only docker", *FILLER, "only compose", *FILLER)

    result = engine().grep(query="docker compose zebra")

    assert result.relaxed
    assert result.used == ("docker", "compose")
    assert result.dropped == ("zebra",)
    assert result.matches[0].snippet.text == "docker compose"


@pytest.mark.parametrize("calls", [1, 3])
def test_the_answer_of_an_agent_that_looked_things_up_first_comes_before_its_calls(calls):
    asked = NewMessage(Role.USER, "Which port does the database of the staging machine listen on?")
    looked = [each for n in range(calls) for each in (a_tool_call(f"c{n}", path="a"), a_tool_result(f"c{n}", "x=1"))]
    conversation_id = a_conversation(*FILLER).conversation_id
    answered = NewMessage(Role.ASSISTANT, "It is 5433, since Monday.")
    said = [asked, *looked, answered, *(text for text in FILLER)]
    say(conversation_id, *said)

    matches = engine().grep(query="On which port does the staging database listen?", scope="messages").matches

    assert [match.first_seq for match in matches[:2]] == [5 + 2 * calls, 4]


def test_a_question_finds_a_word_in_another_form_and_shows_it():
    conversation = a_conversation(*FILLER, "We won the cup.", *FILLER * 4)

    result = engine().grep(query="Did anybody win something?", conversation_id=conversation.conversation_id)

    snippet = result.matches[0].snippet
    assert [snippet.text[begin:end] for begin, end in snippet.highlights] == ["won"]


def test_one_word_finds_the_texts_that_have_it_and_not_those_beside_them():
    conversation = a_conversation(*FILLER, "We run kubernetes.", *FILLER, "More kubernetes!", *FILLER)

    for query, scope in product(("kubernetes", "Kubernetes?", '"kubernetes"'), (None, conversation.conversation_id)):
        result = engine().grep(query=query, conversation_id=scope)

        assert {match.first_seq for match in result.matches} == {4, 8}
        assert not result.relaxed


def test_a_phrase_that_nobody_said_is_taken_apart_and_the_answer_says_so():
    a_conversation("green then red", *FILLER)

    result = engine().grep(query='"red green"')

    assert result.relaxed
    assert result.dropped == ('"red green"',)
    assert result.matches[0].snippet.text == "green then red"


def test_a_phrase_of_one_word_said_twice_is_taken_apart_too():
    a_conversation("a red sail", *FILLER)

    for sort in ("recency", "relevance"):
        result = engine().grep(query='"sail sail"', sort=sort)

        assert result.relaxed
        assert [match.snippet.text for match in result.matches] == ["a red sail"]


def test_the_message_by_the_person_asked_about_comes_first():
    store, conversation = a_store(), a_conversation()
    said = [("Ann", "I painted a sunrise."), ("Bob", "I painted a sunset.")] * 3
    store.append_messages(
        conversation_id=conversation.conversation_id,
        messages=[NewMessage(Role.USER, text, author=author) for author, text in said],
    )

    result = engine().grep(query="What did Bob paint?", conversation_id=conversation.conversation_id, limit=3)

    assert {match.author for match in result.matches} == {"Bob"}


def test_to_a_question_for_a_time_what_tells_one_comes_first():
    told, untold = "The parser was released on Tuesday.", "The parser was released with a party."
    a_conversation(told, *FILLER * 8, untold, *FILLER * 8)

    when, how = (texts_found(f"{word} was the parser released?", limit=2) for word in ("When", "How"))

    assert when == [told, untold]
    assert how == [untold, told]


def test_summaries_are_found_beside_messages_and_say_whether_they_are_active():
    conversation = a_conversation(*(f"message {number} about kubernetes" for number in range(6)))
    store, number = a_store(), conversation.conversation_id
    leaf = a_summary_of(store, number, seqs=[1, 2, 3], content="They spoke about kubernetes.")
    other = a_summary_of(store, number, seqs=[4], content="More about kubernetes.")
    root = a_summary_of(store, number, summaries=[leaf, other], content="All about kubernetes.")

    matches = {match.id: match for match in engine().grep(query="kubernetes", conversation_id=number).matches}

    assert matches[root.summary_id].active and not matches[leaf.summary_id].active
    assert (matches[leaf.summary_id].first_seq, matches[leaf.summary_id].last_seq) == (1, 3)
    covered = {match.first_seq: match.covered_by for match in matches.values() if match.kind is ItemKind.MESSAGE}
    assert covered == {1: root.summary_id, 2: root.summary_id, 3: root.summary_id, 4: root.summary_id, 5: None, 6: None}


@given(data=st.data())
def test_a_message_is_covered_by_the_summary_that_stands_for_it_whatever_lies_between(data):
    """Summaries of messages, and of summaries, that need not stand beside each other."""
    store, number = a_store(), a_conversation(*(f"message {n} about kubernetes" for n in range(12))).conversation_id
    covering: dict[int, SummaryRecord | None] = dict.fromkeys(range(1, 13))
    for _ in range(data.draw(st.integers(1, 5))):
        raw = [seq for seq, summary in covering.items() if summary is None]
        tops = {summary.summary_id: summary for summary in covering.values() if summary is not None}
        seqs = data.draw(st.sets(st.sampled_from(raw), max_size=4)) if raw else set()
        below = data.draw(st.sets(st.sampled_from(sorted(tops)), max_size=3)) if tops else set()
        if seqs and below:
            seqs = set()
        if seqs or below:
            summary = a_summary_of(store, number, seqs=sorted(seqs), summaries=[tops[each] for each in sorted(below)])
            held = [
                seq for seq, top in covering.items() if seq in seqs or (top is not None and top.summary_id in below)
            ]
            covering |= dict.fromkeys(held, summary)

    for sort in ("recency", "relevance"):
        found = engine().grep(query="kubernetes", conversation_id=number, sort=sort).matches

        told = {match.first_seq: (match.covered_by, match.active) for match in found}
        assert told == {seq: (top and top.summary_id, top is None) for seq, top in covering.items()}


@pytest.mark.parametrize("mode", ["full_text", "regex"])
def test_without_a_conversation_the_whole_workspace_is_searched_and_nothing_else(mode):
    a_conversation("a zebra in one")
    a_conversation("a zebra in another")
    a_conversation("a zebra of somebody else", workspace=a_workspace("another"))

    assert sorted(texts_found("zebra", mode=mode)) == ["a zebra in another", "a zebra in one"]
    assert len(RetrievalEngine.from_settings().grep(query="zebra", mode=mode).matches) == 3


@pytest.mark.parametrize("query", ["to be or not to be", "the who", "->", "!!!"])
def test_what_no_index_holds_is_looked_for_as_it_stands(query):
    a_conversation(*FILLER, f"So it was: {query.upper()} indeed.", *FILLER)

    result = engine().grep(query=query)

    assert [match.snippet.text for match in result.matches] == [f"So it was: {query.upper()} indeed."]
    assert "as it stands" in (result.note or "")


QUOTES = ['"', '""', '" "', '"""', "“", "«»", '"\n"', '" -docker', "", "   ", "-docker", '-"docker compose"']


def test_a_query_that_cannot_be_searched_for_is_refused_and_says_why():
    a_conversation("docker")

    for query in (*QUOTES, "a\x00b", "a\ud800", "x" * 1_000_000):
        with pytest.raises(Invalid, match="nothing to search for" if query in QUOTES else "query: "):
            engine().grep(query=query)


def test_no_character_of_a_query_is_an_operator_of_the_database():
    queries = ["' | 'x", "a & b", "foo:*", "(a", "a)", "\\", "''", "<->", "!foo", "a:b*c", "%s %d"]
    a_conversation(*(f"This has {query} in it." for query in queries), *FILLER)

    for query in queries:
        result = engine().grep(query=query)

        assert result.matches or result.dropped


def test_a_query_of_very_many_words_is_answered():
    a_conversation("a needle here", *FILLER)

    result = engine().grep(query="needle " + " ".join(f"word{number}" for number in range(900)))

    assert result.matches[0].snippet.text == "a needle here"


def test_of_very_many_texts_with_a_word_the_newest_are_looked_at_and_the_answer_says_so(monkeypatch):
    monkeypatch.setattr(compiled_query, "MOST_CANDIDATES", 20)
    conversation = a_conversation(*(f"error number {number}" for number in range(400)))
    analyze()

    result = engine().grep(query="error", conversation_id=conversation.conversation_id, limit=50)
    beside = engine().grep(query="error zebra", conversation_id=conversation.conversation_id)

    assert result.bounded
    assert "not all of those were looked at" in (result.note or "")
    assert {match.first_seq for match in result.matches} == set(range(381, 401))
    assert beside.bounded and beside.relaxed
    assert (beside.used, beside.dropped, len(beside.matches)) == (("error",), ("zebra",), 20)


def test_a_path_of_parts_that_are_nearly_everywhere_finds_texts_with_all_of_them():
    everywhere = [f"src/other/name{number}.py changed" for number in range(700)]
    conversation = a_conversation(
        *everywhere,
        *(f"see src/reader/frames.py:{line}" for line in range(3)),
        "reader frames of another kind",
        *("src, py, and frames for the reader" for _ in range(3)),
    )
    analyze()

    for sort in ("relevance", "recency"):
        result = engine().grep(query="src/reader/frames.py", conversation_id=conversation.conversation_id, sort=sort)

        assert {match.first_seq for match in result.matches} == {701, 702, 703, 705, 706, 707}


def test_a_compound_is_found_where_its_parts_follow_each_other_before_where_they_are_said_more_often():
    rivals = [f"In src formats {number} have a display, and formats of that display are formats" for number in range(6)]
    a_conversation(*rivals, "src/display_formats.ts is gone", *rivals, *FILLER)

    queries = ["display_formats", "displayFormats()", "display-formats", "src/display_formats"]
    for query in (*queries, "Where is displayFormats?"):
        assert texts_found(query, limit=1) == ["src/display_formats.ts is gone"]


def test_the_settings_of_the_transaction_around_a_search_are_left_as_they_were():
    conversation = a_conversation("docker")

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 54321")
        engine().grep(query="docker", conversation_id=conversation.conversation_id)
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('enable_seqscan')")
        assert cursor.fetchone() == ("54321ms", "on")


def test_messages_of_a_conversation_can_be_ranked_without_being_shown():
    grep = Grep(policy=RetrievalPolicy(), scope=Scope())
    conversation = a_conversation(*FILLER, "The database listens on port 5433.", *FILLER)
    asked = {"query": "which port?\x00", "conversation_id": conversation.conversation_id, "limit": 3}
    with counted_statements() as sent, grep.ranked_messages(**asked) as (searched, found, lexemes):
        pass

    assert searched.counters == conversation.counters
    # Within a savepoint, and with its settings and those of before.
    assert len(sent) <= 6 + 5

    assert found[0].order_place == 4
    assert "port" in lexemes
