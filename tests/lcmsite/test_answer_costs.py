"""What answers cost a model: the texts of the tools of agents, in tokens, by the official client."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from mcp import Client
from mcp_types import Implementation

from compaction.engine import CompactionEngine
from conversations.content.tokens import TokenEstimator
from conversations.models import Summary
from conversations.scope import Scope
from conversations.types import NewMessage, Role, SummaryKind
from lcmsite.access.keys import Caller
from lcmsite.answers.answer_text import text_of
from lcmsite.answers.found_texts import MANY_MATCHES, MOST_NAMES, NARROW
from lcmsite.mcp.calls import CallRunner
from lcmsite.mcp.mcp_server import STRUCTURE_SHOWING_AGENTS, build_server
from lcmsite.types import KeyScope
from retrieval.types import (
    Description,
    ExpandedItem,
    ExpandResult,
    GrepMode,
    GrepResult,
    GrepScope,
    ItemKind,
    Match,
    Snippet,
)
from tests.committed import committed
from tests.factories import a_conversation, a_store, a_workspace

THINGS = ("retry queue", "billing export", "session cache", "login page", "search index", "nightly backup")
ASKED = (
    "The {thing} failed again with code {code} after the deploy of {day} June; can you look into src/{file}.py?",
    "Please raise the limit of the {thing} to {code}, and tell me what else depends on it.",
    "Why does the {thing} need {code} ms now? Last week it was half of that.",
)
TOLD = (
    "I read src/{file}.py: the {thing} opens a connection for each row and closes none.",
    "The log of {day} June has {code} lines that say so, all from the same worker.",
    "Two tests fail without the change and pass with it; the others do not touch the {thing}.",
    "I left the old setting in place, since the deploy of {day} June still reads it.",
    "If code {code} comes back, the place to look is the handler at the end of src/{file}.py.",
)
count = TokenEstimator("o200k_base").count


def _talk(seed=23, turns=150):
    """A person who asks in a line or two, and an assistant who answers in a paragraph."""
    chance = random.Random(seed)

    def filled(sentence, thing):
        file = f"{thing.split()[0]}_{chance.choice(('worker', 'store', 'views'))}"
        return sentence.format(thing=thing, file=file, code=chance.randint(400, 9000), day=chance.randint(1, 30))

    for _ in range(turns):
        thing = chance.choice(THINGS)
        yield NewMessage(Role.USER, filled(chance.choice(ASKED), thing))
        yield NewMessage(Role.ASSISTANT, " ".join(filled(chance.choice(TOLD), thing) for _ in range(7)))


@pytest.fixture(scope="module")
def pier(django_db_setup, django_db_blocker):
    with committed(django_db_blocker):
        yield a_workspace("pier")


@pytest.fixture(scope="module")
def talk(pier):
    """A compacted conversation, whose messages lie below leaves, and those below condensed summaries."""
    conversation_id = a_conversation("Hello.", session_id="deploys", workspace=pier).conversation_id
    a_store(pier).append_messages(conversation_id=conversation_id, messages=list(_talk()))
    CompactionEngine.from_settings(Scope(pier.pk)).compact(conversation_id=conversation_id)
    return conversation_id


@pytest.fixture
def ask(pier):
    """Asks a tool as a client of this name does."""

    def asked(tool, given, client="an agent"):
        caller = Caller(scope=Scope(pier.pk), key_scopes=frozenset(KeyScope))

        async def call():
            server = build_server(caller_of=lambda context: caller, runner=CallRunner())
            async with Client(server, client_info=Implementation(name=client, version="1")) as agent:
                return await agent.call_tool(tool, given), (await agent.list_tools()).tools

        return anyio.run(call)

    return asked


def text_in(answer):
    assert not answer.is_error
    return answer.content[0].text


@pytest.mark.parametrize(("limit", "most"), [(3, 350), (20, 1800)])
@pytest.mark.parametrize("query", ["retry queue connection", "billing export"])
def test_a_search_costs_little_more_than_its_snippets(talk, ask, query, limit, most):
    answer, _ = ask("lcm_grep", {"conversation_id": talk, "query": query, "limit": limit})

    found = answer.structured_content["items"]
    told = text_in(answer).splitlines()
    assert len(found) == limit
    assert count(text_in(answer)) <= most
    assert [line.partition(" ")[0] for line in told[:limit]] == [each["id"] for each in found]
    assert all(each["covered_by"] in line for each, line in zip(found, told, strict=False) if "covered_by" in each)
    if answer.structured_content["more"]:
        assert len(answer.structured_content["next_cursor"]) <= 40
        assert answer.structured_content["next_cursor"] in text_in(answer)


@pytest.mark.parametrize("place", [0, 60, 188])
def test_where_many_match_what_matches_is_in_the_narrowed_snippets(place):
    text = "".join(map(chr, random.Random(1).choices(range(97, 123), k=200)))
    shown = Snippet(text, 0, ((place, place + 12),))
    match = Match("msg_1", ItemKind.MESSAGE, 1, "s", 1, 1, datetime(2026, 1, 31, tzinfo=UTC), 90, 1.0, shown, True)

    few, many = (
        text_of(GrepResult("x", GrepMode.FULL_TEXT, GrepScope.BOTH, 1, (match,) * count)).splitlines()
        for count in (MANY_MATCHES, MANY_MATCHES + 1)
    )

    assert text in few[0]
    assert text[place : place + 12] in many[0] and len(few[0]) - len(many[0]) == len(text) - NARROW


@pytest.mark.parametrize("kind", ["leaf", "condensed"])
def test_a_described_summary_costs_less_than_nine_hundred_tokens(talk, ask, kind):
    for summary in Summary.objects.filter(conversation_id=talk, kind=kind):
        answer, _ = ask("lcm_describe", {"id": summary.pk})

        assert summary.content in text_in(answer)
        assert count(text_in(answer)) <= max(900, summary.token_count + 230)


def test_of_a_summary_of_summaries_the_first_names_are_listed_and_where_the_others_are():
    names = [f"src/module_{n}/worker.py" for n in range(54)]
    text = f"1-200 user: It was fixed.\nAlso named: {', '.join(names)}\nExpand for details about: tests (4 summaries)."
    made = {
        "id": "sum_1",
        "kind": ItemKind.SUMMARY,
        "conversation_id": 1,
        "created_at": datetime(2026, 1, 31, tzinfo=UTC),
    }

    condensed = text_of(Description(**made, depth=1, content=text))
    leaf = text_of(Description(**made, depth=0, content=text))

    listed = ", ".join(names[:MOST_NAMES])
    assert f"Also named: {listed}, and {54 - MOST_NAMES} more: lcm_expand shows them\nExpand" in condensed
    assert text in leaf


def test_an_expanded_leaf_costs_its_text_and_a_tenth(talk, ask):
    leaf = Summary.objects.filter(conversation_id=talk, kind="leaf").first()

    answer, _ = ask("lcm_expand", {"summary_id": leaf.pk, "include_messages": True})

    texts = [each["content"] for each in answer.structured_content["items"]]
    assert all(text in text_in(answer) for text in texts)
    assert count(text_in(answer)) <= 1.1 * sum(map(count, texts))
    assert len(answer.structured_content["next_cursor"]) <= 40


def test_an_opened_summary_has_the_time_of_its_messages_and_not_the_day_it_was_made():
    then, now = datetime(2023, 5, 8, 13, 0, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC)
    told = {"of": "sum_1", "level": 1, "tokens": 9, "content": "Herring."}
    times = {"created_at": now, "earliest_at": then, "latest_at": then + timedelta(hours=2)}
    leaf = {"kind": ItemKind.SUMMARY, "summary_kind": SummaryKind.LEAF, "first_seq": 1, "last_seq": 4}
    summary = ExpandedItem(id="sum_2", **leaf, **times, **told)
    message = ExpandedItem(
        id="msg_5", kind=ItemKind.MESSAGE, first_seq=5, last_seq=5, created_at=then, role=Role.USER, **told
    )
    opened = ExpandResult(
        summary_id="sum_1", conversation_id=1, depth=1, include_messages=True, items=(summary, message), tokens=18,
        token_cap=100, truncated=False, cursor=None, messages_below=5,
    )  # fmt: skip

    assert text_of(opened).splitlines() == [
        "sum_2 [1-4] leaf summary 2023-05-08 13:00 to 15:00: Herring.",
        "2023-05-08",
        "[5] user: Herring.",
    ]


@pytest.mark.parametrize("client", STRUCTURE_SHOWING_AGENTS)
def test_a_client_that_shows_the_structure_to_its_model_is_given_the_text_alone(talk, ask, client):
    given = {"conversation_id": talk, "query": "billing"}

    answer, tools = ask("lcm_grep", given, client)
    other, others = ask("lcm_grep", given)

    assert answer.structured_content is None and all(tool.output_schema is None for tool in tools)
    assert other.structured_content is not None and all(tool.output_schema for tool in others)
    assert text_in(answer).splitlines()[0] == text_in(other).splitlines()[0]


def test_a_tool_whose_answer_can_be_large_says_so(talk, ask):
    _, tools = ask("lcm_status", {"conversation_id": talk})

    long = {tool.name for tool in tools if (tool.meta or {}).get("anthropic/maxResultSizeChars", 0) == 500_000}
    assert long >= {"lcm_grep", "lcm_about", "lcm_expand", "lcm_expand_range", "lcm_expand_session", "lcm_assemble"}
    assert long >= {"lcm_recall", "lcm_describe", "lcm_message", "lcm_timeline", "lcm_read_file"}
    assert "lcm_append" not in long


def test_no_text_names_what_is_empty(talk, ask):
    for tool, given in {
        "lcm_status": {"conversation_id": talk},
        "lcm_list": {},
        "lcm_coverage": {"conversation_id": talk},
        "lcm_describe": {"id": f"conv_{talk}"},
        "lcm_describe_range": {"conversation_id": talk, "from_seq": 1, "to_seq": 30},
        "lcm_assemble": {"conversation_id": talk, "budget": 4000},
        "lcm_about": {"entity": "billing", "conversation_id": talk},
        "lcm_recall": {"conversation_id": talk},
        "lcm_timeline": {},
        "lcm_schema": {},
    }.items():
        answer, _ = ask(tool, given)
        text = text_in(answer)
        assert text and "None" not in text and "null" not in text, tool
        assert count(text) < count(json.dumps(answer.structured_content)), tool
