"""What agents send and vendors answer is stored once, in order, on its branch."""

import json
from dataclasses import replace
from unittest.mock import ANY

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compaction.models import CompactionBoundary
from conversations.formats.openai_responses import NOTE
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.store.injected import wrapped
from conversations.store.journal import Journal
from conversations.store.paths import branches_of
from conversations.types import NewMessage, ParentLink, Role
from integrity.retention.erasure import Erasures
from lcmsite.gateway.recording.exchange import Outcome
from lcmsite.gateway.recording.exchange_journal import ALTERED, ALTERNATIVES, INSTRUCTIONS, SIDE
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.surfaces_answer import AnswerReader
from lcmsite.gateway.surfaces_digest import Call
from lcmsite.models import GatewayExchange
from tests.clients.answers import Answer, ToolCall
from tests.factories import a_workspace
from tests.integrity.erasing import SECRET, erased, everything_stored
from tests.lcmsite.gateway.sessions import CLAUDE, SESSION, an_agent, conversation, read_answer, results, user, words

pytestmark = pytest.mark.django_db
EVERY = pytest.mark.parametrize("surface", Surface)


def one_of_every(test):
    """In the default run, with one API: what was read is recorded alike, whichever it came by."""
    return pytest.mark.sampled(1)(EVERY(test))


CALLS = Answer("I look.", calls=(ToolCall("ls", {"path": "a"}), ToolCall("ls", {"path": "b"})))


@pytest.fixture
def workspace():
    return a_workspace()


def journal(subpath: str, name: str = f"gateway/{SESSION}"):
    return [each.entry for each in Journal().list_entries(conversation_id=conversation(name).pk, subpath=subpath)]


@EVERY
def test_each_message_is_stored_once_however_often_it_is_sent(workspace, surface):
    agent = an_agent(workspace, surface)

    agent.ask(user("What is there?"), answer=CALLS)
    agent.ask(*results(surface, agent.rows, "one.txt", "one.txt"), answer=Answer("Two files.", thinking="Hm."))
    agent.ask(user("yes"), answer=Answer("Done."))
    exchange = agent.exchange(user("yes"))
    for _ in range(2):
        # As when it is replayed from the spool after all.
        agent.get(exchange, agent.recorder.record_request(exchange), Answer("Done again."))

    found = words(conversation())
    text = " ".join(found)
    once, twice = ("What is there?", "I look.", "Two files."), ("one.txt", "yes")
    assert [text.count(each) for each in (*once, *twice)] == [1, 1, 1, 2, 2]
    assert (found[0], found[-4:]) == ("What is there?", ["yes", "Done.", "yes", "Done again."])
    assert conversation().moves == 0


@one_of_every
def test_a_retry_after_an_error_stores_the_question_once_with_its_error(workspace, surface):
    agent = an_agent(workspace, surface)

    agent.ask(user("Hello"), keep=False)
    agent.ask(user("Hello"), keep=False)
    agent.ask(user("Hello"), answer=Answer("Hi."))

    assert words(conversation()) == ["Hello", "Hi."]
    failed = GatewayExchange.objects.order_by("exchange_id").values_list("status", "error", "answer_seq")
    assert list(failed) == [(529, "overloaded", None), (529, "overloaded", None), (200, "", 2)]


@EVERY
@pytest.mark.parametrize("seqs", [{"from_seq": 1, "to_seq": 2}, {"from_seq": 3, "to_seq": 4}, {}], ids=str)
def test_what_was_erased_is_not_stored_again_when_the_agent_goes_on(workspace, surface, seqs):
    agent = an_agent(workspace, surface)
    for number in range(1, 3):
        agent.ask(user(f"Question {number}"), answer=Answer(f"Answer {number}."))
    erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk, **seqs)
    remaining = words(conversation())

    agent.ask(user("Question 3"), answer=Answer("Answer 3."))
    agent.ask(user("Question 4"), answer=Answer("Answer 4."))

    assert words(conversation()) == [*remaining, "Question 3", "Answer 3.", "Question 4", "Answer 4."]
    assert conversation().moves == 0


def drop_the_oldest_turn(rows):
    return rows[2:]


def compact(rows):
    return [user("This session is being continued from a previous conversation. They asked."), *rows[4:]]


def compact_like_codex(rows):
    # It keeps the questions, before its summary.
    summary = user("Another language model started to solve this problem and produced a summary of its thinking.")
    return [*(row for row in rows if isinstance(row.get("content"), str) and row["role"] == "user"), summary]


def edit_the_first_question(rows):
    return [user("Another question"), *rows[1:]]


def edit_the_second_question(rows):
    return [*rows[:2], user("Another question"), *rows[3:]]


CHANGES = (drop_the_oldest_turn, compact, compact_like_codex, edit_the_first_question, edit_the_second_question)


def five_turns(workspace, surface, **more):
    agent = an_agent(workspace, surface, **more)
    agent.ask(user("Question 1"), answer=Answer("Answer 1."))
    agent.ask(user("Question 2"), answer=Answer("Answer 2."))
    looks = Answer(f"Is it {SECRET}?", calls=(ToolCall("ls", {"path": SECRET}),), thinking=f"Hm, {SECRET}.")
    agent.ask(user(f"Who is {SECRET}?"), answer=looks)
    agent.ask(*results(surface, agent.rows[5:], f"{SECRET} is here."), answer=Answer(f"It is {SECRET}."))
    agent.ask(user("yes"), answer=Answer("Answer 4."))
    agent.ask(user("Question 5"), answer=Answer("Answer 5."))
    return agent


@EVERY
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_erased_is_not_stored_again_when_the_agent_changes_its_history(workspace, surface, change):
    agent = five_turns(workspace, surface)
    last = conversation().messages.get(content=f"It is {SECRET}.").seq
    erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk, from_seq=5, to_seq=last)
    agent.rows = change(agent.rows)

    agent.ask(user("Question 6"), answer=Answer("Answer 6."))

    found = words(conversation())
    assert found[-2:] == ["Question 6", "Answer 6."]
    assert SECRET not in everything_stored()
    kept = ["yes", "Answer 4.", "Question 5", "Answer 5."]
    assert [text for text in found if text in kept] == kept


@one_of_every
@pytest.mark.parametrize("change", CHANGES[:2])
def test_a_changed_history_without_an_erasure_repeats_nothing(workspace, surface, change):
    agent = five_turns(workspace, surface)
    before = words(conversation())
    agent.rows = change(agent.rows)

    agent.ask(user("yes"), answer=Answer("Answer 6."))

    summary = [row["content"] for row in agent.rows if row.get("content", "") == compact([])[0]["content"]]
    assert words(conversation()) == [*before, *summary, "yes", "Answer 6."]


@EVERY
@pytest.mark.parametrize(
    "headers", [{CLAUDE: SESSION}, {"x-lcm-session-id": f"gateway/{SESSION}"}], ids=["claude", "own"]
)
@pytest.mark.parametrize("change", CHANGES[:2])
def test_nothing_of_an_erased_conversation_is_stored_again_but_what_is_new(workspace, surface, headers, change):
    agent = five_turns(workspace, surface, headers=headers)
    erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk)
    agent.rows = change(agent.rows)
    summary = [row["content"] for row in agent.rows if row == compact([])[0]]

    # It equals an erased message, but follows the last answer.
    agent.ask(user("yes"), answer=Answer("Answer 6."))

    assert list(filter(None, words(conversation(), active=False))) == [*summary, "yes", "Answer 6."]


@one_of_every
def test_a_message_that_was_never_recorded_is_stored_even_if_it_equals_an_erased_one(workspace, surface):
    agent = an_agent(workspace, surface)
    for number in range(1, 3):
        agent.ask(user("yes"), answer=Answer(f"Answer {number}."))
    erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk, from_seq=1, to_seq=1)
    # An outage of the recording.
    agent.rows += [user("yes"), *read_answer(surface, Answer("Answer 3.")).rows]

    agent.ask(user("Question 4"), answer=Answer("Answer 4."))

    found = ["", "Answer 1.", "yes", "Answer 2.", "yes", "Answer 3.", "Question 4", "Answer 4."]
    assert words(conversation()) == found


@one_of_every
def test_an_erased_message_is_recognized_without_what_lcm_injected_into_it(workspace, surface):
    agent = five_turns(workspace, surface)
    erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk, from_seq=5, to_seq=5)
    agent.rows = [
        user(f"{each['content']}{wrapped('By the sea.')}") if each == user(f"Who is {SECRET}?") else each
        for each in drop_the_oldest_turn(agent.rows)
    ]

    agent.ask(user("Question 6"), answer=Answer("Answer 6."))

    assert f"Who is {SECRET}?" not in words(conversation(), active=False)


@one_of_every
def test_another_answer_and_an_edit_are_branches_and_a_return_to_one_goes_on_there(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("One"), answer=Answer("First."))
    before = list(agent.rows)
    agent.ask(user("Two"), answer=Answer("Second."))
    second = list(agent.rows)

    agent.rows = before
    agent.ask(user("Two"), answer=Answer("Second, otherwise."), keep=False)
    assert words(conversation()) == ["One", "First.", "Two", "Second, otherwise."]

    agent.ask(user("Two and a half"), answer=Answer("Third."))
    assert words(conversation()) == ["One", "First.", "Two and a half", "Third."]
    assert len(words(conversation(), active=False)) == 7

    agent.rows = [user("Uno"), *before[1:]]
    agent.ask(user("Dos"), answer=Answer("Zweitens."))
    assert words(conversation()) == ["Uno", "First.", "Dos", "Zweitens."]

    agent.rows = second
    agent.ask(user("More"), answer=Answer("Further."))
    assert words(conversation()) == ["One", "First.", "Two", "Second.", "More", "Further."]


@EVERY
def test_a_broken_answer_is_kept_once_and_marked(workspace, surface):
    agent = an_agent(workspace, surface)
    long = Answer("A long answer that is cut off somewhere in its middle, as people press Escape.")

    agent.ask(user("Tell me"), answer=long, cut=True)
    heard = words(conversation())[-1]
    # The agent has seen a little less of it.
    agent.rows[-1] = {"role": "assistant", "content": heard[:-3]}
    agent.ask(user("Go on"), answer=Answer("On."))
    agent.ask(user("More"), answer=Answer("Further."))

    assert words(conversation()) == ["Tell me", heard, "Go on", "On.", "More", "Further."]
    assert long.text.startswith(heard) and conversation().moves == 0
    facts = conversation().messages.get(seq=2).metadata["gateway"]
    assert facts["interrupted"] is True
    assert "interrupted" not in conversation().messages.get(seq=4).metadata["gateway"]


@EVERY
def test_a_broken_answer_that_was_erased_is_not_stored_again(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("Tell me"), answer=Answer("A long answer that is cut off somewhere in its middle."), cut=True)
    heard = words(conversation())[-1]
    erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk, from_seq=2, to_seq=2)

    # The agent has seen a little less of it.
    agent.rows[-1] = {"role": "assistant", "content": heard[:-3]}
    agent.ask(user("Go on"), answer=Answer("On."))
    agent.ask(user("More"), answer=Answer("Further."))

    assert words(conversation()) == ["Tell me", "", "Go on", "On.", "More", "Further."]


@one_of_every
def test_an_answer_that_the_agent_never_got_is_not_on_the_path(workspace, surface):
    agent = an_agent(workspace, surface)

    agent.ask(user("Tell me"), answer=Answer("Half of an answer that was cut off."), cut=True, keep=False)
    agent.ask(user("Tell me"), answer=Answer("A whole answer."))

    assert words(conversation()) == ["Tell me", "A whole answer."]
    assert len(words(conversation(), active=False)) == 3


@pytest.mark.sampled(2)
@EVERY
@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "dropped"])
def test_an_agent_that_goes_on_before_its_broken_answer_is_recorded_stays_where_it_is(workspace, surface, keeps):
    agent = an_agent(workspace, surface)
    long = Answer("A long answer that is cut off somewhere in its middle, as people press Escape.")

    broken = agent.send(user("Tell me"))
    heard = [{"role": "assistant", "content": long.text[:12]}] if keeps else []
    agent.rows = [user("Tell me"), *heard]
    agent.ask(user("Go on"), answer=Answer("On."))
    agent.get(*broken, long, cut=True)
    agent.ask(user("More"), answer=Answer("Further."))

    texts = [long.text[:12].strip()] if keeps else []
    assert words(conversation()) == ["Tell me", *texts, "Go on", "On.", "More", "Further."]
    assert len(words(conversation(), active=False)) == 6


@one_of_every
def test_a_request_that_is_recorded_late_gets_its_place_and_leaves_the_head_where_it_is(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("one"), answer=Answer("A"))
    # It waits for the database, while the agent goes on.
    late = agent.exchange(user("elsewhere"))
    agent.ask(user("two"), answer=Answer("B"))

    agent.recorder.record_request(late)

    found = conversation()
    assert words(found) == ["one", "A", "two", "B"]
    assert words(found, active=False)[-1] == "elsewhere"
    assert {branch.first_seq: branch.follows_seq for branch in branches_of(found)}[5] == 2


@one_of_every
def test_an_answer_that_is_recorded_late_leaves_the_head_where_it_is(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("one"), answer=Answer("A"))
    late = agent.send(user("left"))
    agent.ask(user("right"), answer=Answer("B"))

    agent.get(*late, Answer("On the left."))
    agent.ask(user("more"), answer=Answer("C"))

    found = conversation()
    assert words(found) == ["one", "A", "right", "B", "more", "C"]
    assert "On the left." in words(found, active=False)


def test_what_came_of_an_answer_is_kept_beside_a_retry_that_began_with_a_thought(workspace):
    agent = an_agent(workspace, Surface.RESPONSES)
    broken = agent.send(user("Tell me"))
    agent.ask(user("Tell me"), answer=Answer("A whole answer.", thinking="Hm."))

    agent.get(*broken, Answer("Half of another answer that was cut off."), cut=True)

    assert any("Half of another" in text for text in words(conversation(), active=False))


@EVERY
def test_instructions_and_tools_are_kept_once_beside_the_messages(workspace, surface):
    agent = an_agent(workspace, surface)
    name = {Surface.MESSAGES: "system", Surface.RESPONSES: "instructions"}.get(surface)
    more = {name: "You are an agent."} if name else {}
    agent.rows = [] if name else [{"role": "system", "content": "You are an agent."}]

    agent.ask(user("Hello"), answer=Answer("Hi."), **more)
    agent.ask(user("And?"), answer=Answer("Yes."), **more)

    assert words(conversation()) == ["Hello", "Hi.", "And?", "Yes."]
    kept = journal(INSTRUCTIONS)
    assert [entry["type"] for entry in kept] == ["system", "tools"]
    assert "You are an agent." in json.dumps(kept)


def test_titles_probes_and_compactions_of_the_host_are_kept_apart(workspace):
    agent = an_agent(workspace, Surface.CHAT, headers={"x-session-id": "ses_0123456789"})
    name = "gateway/ses_0123456789"
    title = [{"role": "system", "content": "You are a title generator. Output only a title."}, user("Hello")]
    agent.rows, mine = title, agent.rows

    agent.ask(answer=Answer("A greeting"), tools=[], keep=False)
    agent.rows = mine
    agent.ask(user("Hello"), answer=Answer("Hi."))
    agent.ask(user("quota"), answer=Answer("."), max_tokens=1, keep=False)
    agent.ask(user("Provide a detailed summary of our conversation above."), answer=Answer("They met."), keep=False)
    agent.ask(user("Summarize our conversation so far."), keep=False)

    assert words(conversation(name)) == ["Hello", "Hi."]
    sides = journal(SIDE, name)
    assert [entry["type"] for entry in sides] == ["title", "probe", "compaction", "compaction"]
    assert sides[0]["answer"][0]["content"] == "A greeting"
    # One that got no answer, too.
    assert (sides[3]["answer"], sides[3]["messages"][-1]["content"]) == ([], "Summarize our conversation so far.")
    # Of the history before the compaction nothing is kept again.
    assert (sides[2]["known_messages"], len(sides[2]["messages"])) == (2, 1)


def test_subagents_are_children(workspace):
    main = an_agent(workspace, Surface.MESSAGES)
    agent = {"x-claude-code-agent-id": "agent-0001"}
    sub = an_agent(workspace, Surface.MESSAGES, headers={CLAUDE: SESSION, **agent})

    sub.ask(user("Look for it."), answer=Answer("Found."))
    main.ask(user("Hello"), answer=Answer("Hi."))
    sub.ask(user("Where?"), answer=Answer("Here."))

    child = conversation(f"gateway/{SESSION}/agent-0001")
    assert words(child) == ["Look for it.", "Found.", "Where?", "Here."]
    assert (child.parent, child.parent_link) == (conversation(), ParentLink.SUBAGENT)
    assert words(conversation()) == ["Hello", "Hi."]


def test_further_choices_are_kept_beside_the_answer(workspace):
    agent = an_agent(workspace, Surface.CHAT)
    other = {"role": "assistant", "content": "Ho."}

    answer = replace(read_answer(Surface.CHAT, Answer("Hi.")), alternatives=(other,))
    agent.recorder.record_answer(*agent.send(user("Hello")), Outcome(200, 5, answer=answer))

    assert words(conversation()) == ["Hello", "Hi."]
    assert [(each["answer_seq"], each["choices"]) for each in journal(ALTERNATIVES)] == [(2, [other])]


def test_no_conversation_is_opened_that_no_client_has_named(workspace):
    agents = {"x-claude-code-agent-id": "agent-0002", "x-claude-code-parent-agent-id": "agent-0001"}

    an_agent(workspace, Surface.CHAT, headers={"x-lcm-session-id": "team/a/b", **agents}).ask(user("Hello"))

    names = ["team/a/b", "team/a/b/agent-0001", "team/a/b/agent-0002"]
    assert sorted(Conversation.objects.values_list("session_id", flat=True)) == names
    assert [conversation(name).parent for name in names] == [None, *map(conversation, names[:2])]


CLAUDE_SUMMARY = [user("This session is being continued from a previous conversation. They asked three things.")]
CODEX_SUMMARY = [user("Another language model started to solve this problem and produced a summary of its thinking.")]
PI_SUMMARY = [user("The conversation history before this point was compacted into the following summary:\n\n<summary>")]
OPENCODE_SUMMARY = [user("What did we do so far?"), {"role": "assistant", "content": "They asked three things."}]


@pytest.mark.parametrize(
    ("surface", "summary", "first", "then"),
    [
        (Surface.MESSAGES, CLAUDE_SUMMARY, slice(0), slice(6, 6)),
        (Surface.MESSAGES, CLAUDE_SUMMARY, slice(0), slice(4, 6)),
        (Surface.MESSAGES, CLAUDE_SUMMARY, slice(0), slice(3, 6)),
        # Codex keeps the questions, before its summary.
        (Surface.RESPONSES, CODEX_SUMMARY, slice(0, 6, 2), slice(6, 6)),
        (Surface.CHAT, PI_SUMMARY, slice(0), slice(4, 6)),
        (Surface.CHAT, OPENCODE_SUMMARY, slice(0), slice(4, 6)),
    ],
    ids=["claude", "claude-kept-2", "claude-kept-3", "codex", "pi", "opencode"],
)
def test_a_compaction_of_the_host_is_a_boundary_and_repeats_nothing(workspace, surface, summary, first, then):
    agent = an_agent(workspace, surface)
    for number in range(3):
        agent.ask(user(f"Question {number}"), answer=Answer(f"Answer {number}."))
    before = words(conversation())
    agent.rows = [*agent.rows[first], *summary, *agent.rows[then]]

    agent.ask(user("Question 3"), answer=Answer("Answer 3."))
    agent.ask(user("Question 4"), answer=Answer("Answer 4."))

    texts = [row["content"] for row in summary]
    assert words(conversation()) == [*before, *texts, "Question 3", "Answer 3.", "Question 4", "Answer 4."]
    [boundary] = CompactionBoundary.objects.filter(conversation=conversation())
    assert boundary.last_seq == 6


COMPACTION = {"type": "compaction", "encrypted_content": "gAAA"}
BLOCKS = [{**COMPACTION, "content": "They met."}, {"type": "text", "text": "Fine."}]
FINE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fine."}]}


@pytest.mark.parametrize(
    ("surface", "whole", "summary"),
    [
        (Surface.MESSAGES, {"type": "message", "role": "assistant", "content": BLOCKS}, "They met."),
        (Surface.RESPONSES, {"output": [{**COMPACTION, "id": "cmp_1"}, FINE]}, None),
    ],
    ids=["messages", "responses"],
)
def test_a_compaction_of_the_vendor_is_stored_once_and_is_a_boundary_for_who_goes_on_from_it(
    workspace, surface, whole, summary
):
    agent = an_agent(workspace, surface)
    agent.ask(user("Hello"), answer=Answer("Hi."))
    reader = AnswerReader(surface, is_stream=False)
    reader.feed(json.dumps(whole).encode())
    answer = reader.finish()

    agent.recorder.record_answer(*agent.send(user("How are you?")), Outcome(200, 5, answer=answer))
    agent.rows = list(answer.rows)
    agent.ask(user("And now?"), answer=Answer("Better."))
    agent.ask(user("And now?"), answer=Answer("Well."))

    found = conversation()
    texts = list(filter(None, words(found, active=False)))
    assert texts == ["Hello", "Hi.", "How are you?", "Fine.", "And now?", "Better.", "And now?", "Well."]
    stored = found.messages.get(seq=4)
    if summary:
        assert [part.text_content for part in stored.parts.filter(part_type="compaction")] == [summary]
    else:
        assert "cmp_1" in str(stored.metadata)
    assert CompactionBoundary.objects.filter(conversation=found).count() == 1


@pytest.mark.parametrize("surface", [Surface.MESSAGES, Surface.CHAT])
def test_cleared_results_of_tools_move_nothing(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("What is there?"), answer=CALLS)
    found = results(surface, agent.rows, "a" * 1000, "b" * 1000)
    agent.ask(*found, answer=Answer("Two files."))
    cleared = results(surface, agent.rows[:2], "[cleared]", "[cleared]")
    agent.rows = [*agent.rows[:2], *cleared, *agent.rows[2 + len(found) :]]

    agent.ask(user("And?"), answer=Answer("Yes."))

    assert conversation().moves == 0 and "[cleared]" not in " ".join(words(conversation(), active=False))
    assert len(journal(ALTERED)) == len(cleared)


LOOK = Answer("I look.", calls=(ToolCall("sh", {"command": "cd /boats && ls  a"}), ToolCall("sh", {"command": "ls b"})))


def rewritten(row, old, new):
    """A row of an answer with its calls as an agent has written them anew."""
    text = json.dumps(row)
    for quote in ('"', '\\"'):
        text = text.replace(
            f"{quote}command{quote}: {quote}{old}", f"{quote}all{quote}: false, {quote}command{quote}: {quote}{new}"
        )
    return json.loads(text)


@pytest.mark.parametrize("surface", [Surface.MESSAGES, Surface.CHAT])
def test_calls_that_the_agent_has_rewritten_are_the_same(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("What is there?"), answer=LOOK)
    for number in range(4):
        agent.rows[-1] = rewritten(agent.rows[-1], "cd /boats && ls  a", "ls a")
        found = results(surface, agent.rows[-1:], f"one {number}", f"two {number}")
        agent.ask(*found, answer=LOOK if number < 3 else Answer("Two files."))
    agent.ask(user("And?"), answer=Answer("Yes."))

    assert conversation().moves == 0 and len(journal(ALTERED)) == 4
    # An erasure does not reach the journal.
    assert all(each.keys() == {"uuid"} for each in journal(ALTERED))
    assert " ".join(words(conversation(), active=False)).count("I look.") == 4
    stored = conversation().next_seq

    # It compacts, and keeps the newest messages.
    agent.rows = [user("This session is being continued from a previous conversation. They asked."), *agent.rows[-6:]]
    agent.ask(user("Then?"), answer=Answer("No."))

    assert conversation().next_seq == stored + 3


@pytest.mark.parametrize("surface", [Surface.MESSAGES, Surface.CHAT])
def test_a_call_in_which_a_person_has_written_something_else_is_stored(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("What is there?"), answer=LOOK)

    agent.rows[-1] = rewritten(agent.rows[-1], "ls b", "ls c")
    agent.ask(*results(surface, agent.rows[-1:], "one", "two"), answer=Answer("Two files."))

    assert conversation().moves == 1 and "ls c" in " ".join(words(conversation()))
    assert "ls b" in " ".join(words(conversation(), active=False))


@pytest.mark.parametrize("surface", [Surface.MESSAGES, Surface.CHAT])
@pytest.mark.parametrize("is_erased_first", [True, False])
def test_an_erased_call_that_the_agent_rewrites_is_not_stored_again(workspace, surface, is_erased_first):
    agent = an_agent(workspace, surface)
    agent.ask(user("What is there?"), answer=Answer("I look.", calls=(ToolCall("sh", {"command": f"ls {SECRET}"}),)))

    def erase():
        erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk, from_seq=2, to_seq=2)

    if is_erased_first:
        erase()
    agent.rows[-1] = rewritten(agent.rows[-1], "ls", "ls")
    agent.ask(*results(surface, agent.rows[-1:], "One."), answer=Answer("One file."))
    if not is_erased_first:
        erase()
    agent.ask(user("And?"), answer=Answer("Yes."))
    # It compacts, and keeps the newest messages.
    agent.rows = [user("This session is being continued from a previous conversation. They asked."), *agent.rows[1:]]
    agent.ask(user("Then?"), answer=Answer("No."))

    assert SECRET not in everything_stored()
    assert conversation().moves == 0 and words(conversation())[-1] == "No."


@pytest.mark.parametrize("surface", [Surface.MESSAGES, Surface.CHAT])
def test_an_agent_that_rewrites_a_call_goes_on_there_though_another_answer_was_erased(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("What is there?"), answer=replace(LOOK, text=SECRET), keep=False)
    erased(Erasures.from_settings(Scope(workspace.pk)), conversation().pk, from_seq=2, to_seq=2)
    agent.ask(user("What is there?"), answer=LOOK)
    moves = conversation().moves

    agent.rows[-1] = rewritten(agent.rows[-1], "cd /boats && ls  a", "ls a")
    agent.ask(*results(surface, agent.rows[-1:], "one", "two"), answer=Answer("Two files."))

    assert conversation().moves == moves and conversation().is_active(3)
    assert "I look." in " ".join(words(conversation()))


EDIT = {"line": 5, "old": "port 5433", "all": False, "deep": [{"text": "one two"}]}


@pytest.mark.parametrize(
    ("original", "changed", "is_same"),
    [
        (EDIT, EDIT | {"replace_all": False, "most": 5, "none": None}, True),
        (EDIT, EDIT | {"old": " port\n5433  "}, True),
        (EDIT, EDIT | {"line": 999}, False),
        (EDIT, EDIT | {"old": "5"}, False),
        (EDIT, EDIT | {"old": "5433"}, False),
        (EDIT, EDIT | {"old": "port5433"}, False),
        (EDIT, EDIT | {"old": ""}, False),
        (EDIT, EDIT | {"all": 0}, False),
        (EDIT, EDIT | {"note": "other words"}, False),
        (EDIT, EDIT | {"deep": [{"text": "one"}]}, False),
        (EDIT, EDIT | {"deep": []}, False),
        (EDIT, {key: value for key, value in EDIT.items() if key != "line"}, False),
        ({"command": "cd /boats && make && ls"}, {"command": "make && ls"}, True),
        ({"command": "cd '/my boats' && ls"}, {"command": "ls"}, True),
        ({"command": "cd /boats && make && ls"}, {"command": "ls"}, False),
        ({"command": "make && cd /boats && ls"}, {"command": "make && ls"}, False),
        ({"command": "cd $(make) && ls"}, {"command": "ls"}, False),
        ({"command": "find . -exec ls {} \\\\;"}, {"command": "find . -exec ls {} \\;"}, True),
        ({"command": "rm -rf /tmp/x"}, {"command": "rm -rf /"}, False),
        ({"command": "rm -rf /tmp/x"}, {"command": "rm -rf / tmp/x"}, False),
        ({"text": "one  \ntwo\n \n"}, {"text": "one\ntwo\n"}, True),
    ],
)
def test_a_call_is_the_same_only_if_the_agent_says_nothing_new_in_it(original, changed, is_same):
    assert Call("1", "edit", changed).repeats(Call("1", "edit", original)) == is_same
    assert not Call("2", "edit", changed).repeats(Call("1", "edit", original))


@one_of_every
def test_what_lcm_injected_is_not_stored_again(workspace, surface):
    agent = an_agent(workspace, surface)
    agent.ask(user("Hello"), answer=Answer("Hi."))
    agent.rows = [user(wrapped("They met before.")), user(f"Hello\n{wrapped('By the sea.')}"), *agent.rows[1:]]

    agent.ask(user("And?"), answer=Answer("Yes."))

    assert words(conversation()) == ["Hello", "Hi.", "And?", "Yes."]


def test_reminders_of_hosts_are_stored_and_marked(workspace):
    agent = an_agent(workspace, Surface.MESSAGES)
    reminder = {"type": "text", "text": "<system-reminder>Be careful.</system-reminder>"}
    agent.ask({"role": "user", "content": [reminder, {"type": "text", "text": "Hello"}]}, answer=Answer("Hi."))
    agent.rows[0] = user("Hello")

    agent.ask(user("And?"), answer=Answer("Yes."))

    assert [part.is_synthetic for part in conversation().messages.get(seq=1).parts.order_by("ordinal")] == [True, None]
    assert len(words(conversation(), active=False)) == 4


def test_texts_that_codex_wrote_for_the_user_are_marked(workspace):
    agent = an_agent(workspace, Surface.RESPONSES)
    pieces = ["<environment_context>\n<cwd>/boats</cwd>\n</environment_context>", "Hello"]
    content = [{"type": "input_text", "text": each} for each in pieces]
    agent.ask({"type": "message", "role": "user", "content": content}, answer=Answer(f"{pieces[0]} is yours."))

    marks = [part.is_synthetic for each in conversation().messages.all() for part in each.parts.order_by("ordinal")]
    assert marks == [True, None, None]


@pytest.mark.parametrize(
    ("text", "is_of_host"),
    [
        ("<user_instructions>Be brief.</user_instructions>\nWhich port has the database?", False),
        ("<user_instructions>Be brief.</user_instructions>\n<question>Which port?</question>", False),
        ("<user_instructions>Be brief.", False),
        ("<task-notification>\n<status>completed</status>\n</task-notification>\n", True),
        ("# AGENTS.md instructions for /boats\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>", True),
        ("<command-name>/cost</command-name>\n  <command-message>cost</command-message>\n"
         "  <command-args></command-args>", True),
        ("<command-name>/ask</command-name>\n<command-args>Which port?</command-args>", False),
    ],
)  # fmt: skip
def test_only_a_text_that_the_host_wrote_as_a_whole_is_marked(workspace, text, is_of_host):
    agent = an_agent(workspace, Surface.MESSAGES)
    agent.ask({"role": "user", "content": [{"type": "text", "text": text}]}, answer=Answer("5433."))

    [part] = conversation().messages.get(seq=1).parts.all()
    assert bool(part.is_synthetic) == is_of_host


def test_a_session_without_a_name_is_found_by_its_history(workspace):
    one, other = (an_agent(workspace, Surface.CHAT, headers={}) for _ in range(2))
    one.ask(user("One"), answer=Answer("First."))
    other.ask(user("Other"), answer=Answer("Second."))
    one.ask(user("And?"), answer=Answer("Yes."))
    other.ask(user("And?"), answer=Answer("No."))

    assert sorted(map(words, Conversation.objects.all())) == [
        ["One", "First.", "And?", "Yes."],
        ["Other", "Second.", "And?", "No."],
    ]
    assert {each.session_id.split("/")[0] for each in Conversation.objects.all()} == {"gateway"}


def test_the_same_first_question_begins_another_session_unless_it_is_a_retry(workspace):
    first = an_agent(workspace, Surface.CHAT, headers={})
    first.ask(user("Hi"), keep=False)
    first.ask(user("Hi"), answer=Answer("Hello."))
    GatewayExchange.objects.update(received_at="2026-01-01T00:00:00Z")

    an_agent(workspace, Surface.CHAT, headers={}).ask(user("Hi"), answer=Answer("Good morning."))
    first.ask(user("And?"), answer=Answer("Yes."))

    assert sorted(map(words, Conversation.objects.all())) == [["Hi", "Good morning."], ["Hi", "Hello.", "And?", "Yes."]]


def test_sessions_that_only_begin_with_the_same_question_are_not_read(workspace):
    for number in range(3):
        an_agent(workspace, Surface.CHAT, headers={}).ask(user("Begin."), answer=Answer(f"Answer {number}."))
        GatewayExchange.objects.update(received_at="2026-01-01T00:00:00Z")

    with CaptureQueriesContext(connection) as queries:
        an_agent(workspace, Surface.CHAT, headers={}).ask(user("Begin."), answer=Answer("Answer 3."))

    [found] = [each["sql"] for each in queries if '"answer_chain" IN' in each["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(found)
        # Only the exchange itself, which is stored now.
        assert (cursor.rowcount, Conversation.objects.count()) == (1, 4)


def test_requests_with_only_what_is_new_follow_their_answer(workspace):
    agent = an_agent(workspace, Surface.RESPONSES, headers={})
    agent.ask(user("One"), answer=Answer("First."))
    [answered] = GatewayExchange.objects.all()
    agent.rows = []

    agent.ask(user("Two"), answer=Answer("Second."), previous_response_id=answered.response_id, keep=False)
    agent.ask(user("Two"), answer=Answer("Second."), previous_response_id=answered.response_id, keep=False)
    agent.ask(user("Deux"), answer=Answer("Third."), previous_response_id=answered.response_id)

    [found] = Conversation.objects.all()
    assert words(found) == ["One", "First.", "Deux", "Third."]
    assert words(found, active=False) == ["One", "First.", "Two", "Second.", "Deux", "Third."]


@pytest.mark.parametrize("headers", [{}, {CLAUDE: SESSION}], ids=["unnamed", "named"])
def test_references_to_stored_items_are_these_items(workspace, headers):
    agent = an_agent(workspace, Surface.RESPONSES, headers=headers)
    agent.ask(user("What is there?"), answer=Answer(thinking="Hm.", calls=CALLS.calls))
    calls = agent.rows[-len(CALLS.calls) :]
    agent.rows = [agent.rows[0], {"type": "item_reference", "id": agent.rows[1]["id"]}, *calls]
    agent.ask(*results(Surface.RESPONSES, calls, "one.txt", "two.txt"), answer=Answer("Two files.", thinking="Aha."))
    agent.rows[-2:] = [{"type": "item_reference", "id": row["id"]} for row in agent.rows[-2:]]
    GatewayExchange.objects.update(received_at="2026-01-01T00:00:00Z")

    agent.ask(user("Thanks"), {"type": "item_reference", "id": "never stored"}, answer=Answer("Welcome."))

    [found] = Conversation.objects.all()
    assert words(found) == words(found, active=False)
    assert [each for each in words(found) if each and "[" not in each] == [
        "What is there?", "one.txt", "two.txt", "Two files.", "Thanks", "Welcome."
    ]  # fmt: skip
    stranger = an_agent(a_workspace("elsewhere"), Surface.RESPONSES, headers=headers)
    stranger.rows = agent.rows
    stranger.ask(user("And I?"))
    theirs = Conversation.objects.get(workspace=stranger.recorder.scope.workspace_id)
    assert "Two files." not in words(theirs)
    assert stranger.recorder.find_seqs(stranger.exchange(user("And I?"))) == (theirs.pk, ANY)


def test_a_message_with_metadata_like_those_of_an_item_does_not_stop_references(workspace):
    agent = an_agent(workspace, Surface.RESPONSES)
    agent.ask(user("One"), answer=Answer("First."))
    like_an_item = NewMessage(Role.USER, "Mine", metadata={NOTE: {"add": {"id": "msg_9"}, "else": 1}})
    store = agent.recorder.branches.store
    store.append_messages(conversation_id=Conversation.objects.get().pk, messages=[like_an_item])

    agent.ask({"type": "item_reference", "id": "msg_9"}, user("Two"), answer=Answer("Second."))

    assert words(Conversation.objects.get())[-2:] == ["Two", "Second."]


def test_a_conversation_that_the_vendor_keeps_is_one_here(workspace):
    agent = an_agent(workspace, Surface.RESPONSES, headers={})
    for text in ("One", "One", "Two"):
        agent.rows = []
        agent.ask(user(text), answer=Answer(f"Answer to {text}."), conversation={"id": "conv_12345678"})

    assert words(conversation("gateway/conv_12345678")) == [
        "One", "Answer to One.", "One", "Answer to One.", "Two", "Answer to Two."
    ]  # fmt: skip


def test_a_session_that_others_have_begun_goes_on_behind_them(workspace):
    store = ConversationStore.from_settings(Scope(workspace.pk))
    opened = store.open_conversation(session_id="mine")
    store.append_messages(conversation_id=opened.conversation_id, messages=[NewMessage(Role.USER, "Before.")])
    agent = an_agent(workspace, Surface.CHAT, headers={"x-lcm-session-id": "mine"})

    agent.ask(user("Hello"), answer=Answer("Hi."))
    agent.ask(user("And?"), answer=Answer("Yes."))

    assert words(conversation("mine")) == ["Before.", "Hello", "Hi.", "And?", "Yes."]


def test_what_the_store_cannot_take_is_stored_as_its_json(workspace, settings):
    settings.LCM = {"max_message_parts": 3}
    agent = an_agent(workspace, Surface.MESSAGES)
    many = {"role": "user", "content": [{"type": "text", "text": "x"}] * 4}

    agent.ask(many, user("Hello \x00 \ud800"), answer=Answer("Hi."))

    refused, hello, answer = words(conversation(), active=False)
    assert (json.loads(refused), hello, answer) == (many, "Hello \ufffd \ufffd", "Hi.")
