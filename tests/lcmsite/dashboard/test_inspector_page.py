"""What a model would be given, and why: every item with its reason, the text to the letter, receipts compared."""

from __future__ import annotations

import html
import json
import re

import pytest

from compaction.engine import CompactionEngine
from conversations.formats import RENDERERS
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from retrieval.assembler import ContextAssembler
from retrieval.models import AssemblyReceipt
from tests.factories import a_conversation, a_tool_call, a_tool_result, a_workspace, say
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part


@pytest.fixture(scope="module")
def harbour_of_all(module_rows: None) -> int:
    """A compacted conversation with system words, a call and hostile words in all of them."""
    messages = [
        NewMessage(Role.SYSTEM, f"Be kind. {HOSTILE}", author="host"),
        *(
            NewMessage(Role.USER if n % 2 else Role.ASSISTANT, f"Turn {n} about boats {HOSTILE}. " * 12)
            for n in range(1, 40)
        ),
        a_tool_call("c1", path=HOSTILE),
        a_tool_result("c1", HOSTILE),
    ]
    conversation_id = a_conversation(session_id="harbour", title=HOSTILE).conversation_id
    say(conversation_id, *messages)
    CompactionEngine.from_settings(Scope(a_workspace().pk)).compact(conversation_id=conversation_id)
    return conversation_id


@pytest.fixture
def path(harbour_of_all: int) -> str:
    return f"/w/default/conversations/{harbour_of_all}/context/"


def assembler() -> ContextAssembler:
    return ContextAssembler.from_settings(Scope(a_workspace().pk))


def test_every_item_comes_into_the_page_with_its_reason_and_the_total_so_far(harbour_of_all, reader, path):
    [address] = re.findall(r'hx-get="([^"]+)" hx-trigger="load"', reader.get(path).content.decode())
    page = as_part(reader, address)

    receipt = assembler().assemble(conversation_id=harbour_of_all).receipt
    assert receipt
    for line in receipt:
        assert f"<code>{line.id}</code>" in page
        assert f'<td class="number">{line.tokens:,}</td><td class="number">{line.running_total:,}</td>' in page
    assert {line.reason for line in receipt} >= {"system", "fresh_tail", "fits"}
    assert "fresh tail: always included" in page and "fits into the budget" in page
    assert "Nothing is left out." in page
    assert HOSTILE not in page


def test_what_is_left_out_what_answers_a_query_and_the_past_are_told_apart(reader, path):
    included, _, left = as_part(reader, f"{path}?budget=400").partition("<h2>Left out</h2>")
    queried = as_part(reader, f"{path}?query=boats&budget=3000")
    past = as_part(reader, f"{path}?as_of=5")

    assert "does not fit into the budget" in left and "does not fit into the budget" not in included
    assert "over budget" in included
    assert "matches the query" in queried and 'value="boats"' in queried
    assert "as of message 5" in past and "current settings" in past


def test_what_cannot_be_meant_is_told_beside_the_form(reader, path):
    for asked in ("budget=0", "as_of=yesterday", "budget=9&reserve=9", "format=xml"):
        answer = reader.get(f"{path}?{asked}", headers={"HX-Request": "true"})
        assert answer.status_code == 200 and 'role="alert"' in answer.content.decode()
        assert 'name="budget"' in reader.get(f"{path}?{asked}").content.decode()

    answer = reader.get(f"{path}difference/?receipt=rcp_0&other={HOSTILE}", headers={"HX-Request": "true"})
    assert answer.status_code == 404 and "There is no receipt" in answer.content.decode()


def test_the_text_is_to_the_letter_what_a_model_gets(harbour_of_all, reader, path):
    given = as_part(reader, f"{path}text/?budget=3000")

    shown = [html.unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", given, re.S)]
    assert shown == [item.text for item in assembler().assemble(conversation_id=harbour_of_all, budget=3000).items]
    assert HOSTILE not in given and HOSTILE in "".join(shown)


@pytest.mark.parametrize("format", list(RENDERERS))
def test_each_format_is_shown_as_its_api_takes_it(harbour_of_all, reader, path, format):
    given = as_part(reader, f"{path}text/?budget=3000&format={format.value}")

    shown = json.loads(html.unescape(re.findall(r'<pre id="exact-text"[^>]*>(.*?)</pre>', given, re.S)[0]))
    context = assembler().assemble(conversation_id=harbour_of_all, budget=3000, format=format)
    said = {"system": context.system, "messages": context.messages} if context.system else context.messages
    assert shown == json.loads(json.dumps(said))
    assert HOSTILE not in given


def test_a_receipt_is_kept_and_compared_with_another(reader, path):
    kept = [reader.post(f"{path}receipts/", {"budget": budget, "query": "boats"}) for budget in ("900", "3000")]
    page = reader.get(kept[1]["Location"]).content.decode()
    older, newer = AssemblyReceipt.objects.order_by("created_at").values_list("receipt_id", flat=True)
    told = as_part(reader, f"{path}difference/?receipt={older}&other={newer}")

    assert [answer.status_code for answer in kept] == [302, 302]
    assert f"kept as {newer}" in page and f"<code>{older}</code>" in page
    assert re.search(rf'name="other" value="{newer}"[^>]* checked', page)
    assert re.search(rf'name="receipt" value="{older}"[^>]* checked', page)
    assert "added" in told and f"<code>{older}</code> to <code>{newer}</code>" in told


def test_an_empty_conversation_says_so(reader):
    conversation_id = a_conversation().conversation_id

    path = f"/w/default/conversations/{conversation_id}/context/"

    assert "so the context is empty" in as_part(reader, path)
    assert "None yet." in reader.get(path).content.decode()
