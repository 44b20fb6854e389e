"""Only an admin who asks for it reads what is quarantined."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid
from conversations.files.large_files import LargeFileService
from conversations.models import FileReference
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.ledgers import Ledgers
from integrity.repairs.quarantines import Quarantines
from lcmsite.catalogue.operations import CATALOGUE, OPERATIONS
from retrieval.expansion.expand import Expansion
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.map_operator import MapOperator
from retrieval.map.map_worker import MapWorker
from retrieval.map.models import MapEvent
from retrieval.policy import RetrievalPolicy
from tests.factories import a_store
from tests.lcmsite.callers import Api, an_api_key, as_arguments, lcm
from tests.lcmsite.faces.questions import READS
from tests.lcmsite.withheld import AUTHOR, ENCODED, FILE, SECRET, assert_no_secret_in, readings, withheld_things
from tests.summaries import a_summary_of

CONFLICT = 4
# They name what there is by ids and numbers, and show no text of it.
WITHOUT_TEXTS = ("lcm_items", "lcm_impact", "lcm_lineage", "lcm_lineage_window")
# They give bytes of a file or none; all others answer without the words.
REFUSED = ("lcm_read_file", "lcm_read_lines")
# Operations that read and are not among `readings`, by the reason. Whoever adds one says why it gives no stored text.
APART = {
    "What this LCM is and how it is set.": "schema models retention",
    "Names, settings and counts of conversations.": """
        find show branches projects evaluate activity storage integrity journal_subpaths
    """,
    "States, ids, seqs and tokens of work and its results.": """
        runs run jobs job plans show_plan history_jobs history_job boundaries coverage receipts receipt compare_receipts
    """,
    "What the caller gave: a question, a prompt, the name of a file that is not finished.": """
        grants grant map_runs map_status uploads
    """,
    "Ids, hashes, counts and reasons of findings, repairs, acts and events.": """
        check scan reports report repair_plans repairs quarantines audit map_record
    """,
    "No prompt of a conversation with quarantined items: `test_a_conversation_without_a_title_...`.": "list browse",
    "It holds everything, as a ledger does.": "journal",
    "An admin reads on purpose what is withheld.": "read_quarantined",
    "A test of its own: `test_items_of_a_quarantined_file_...`.": "map_output",
}


@pytest.fixture(scope="module")
def held(module_rows: None, module_files: Path) -> SimpleNamespace:
    return withheld_things()


def test_every_operation_that_reads_is_tried_here_or_has_a_reason(held):
    tried = {operation.tool for operation, _ in readings(held)}
    apart = [f"lcm_{name}" for names in APART.values() for name in names.split()]

    assert sorted([*tried, *apart]) == sorted(operation.tool for operation in READS)


def release_all() -> None:
    for each in Quarantines.from_settings().list_quarantines():
        Quarantines.from_settings().release(quarantine_id=each.quarantine_id)


def test_no_reading_over_rest_or_on_the_command_line_gives_the_words(held):
    api = Api(an_api_key(held.workspace))

    for operation, given in readings(held):
        reply = api.perform(operation, given)
        shown = lcm(*as_arguments(operation, given))

        status, exit_code = (409, CONFLICT) if operation.tool in REFUSED else (200, 0)
        assert (reply.status, shown.exit_code) == (status, exit_code), (operation.tool, reply.body, shown.err)
        assert_no_secret_in(json.dumps(reply.body), given)
        assert_no_secret_in(shown.out + shown.err, given)
    assert api.get(f"files/{held.file_id}/download/").body["code"] == "quarantined"
    assert lcm("export", "harbour", "--format", "markdown").exit_code == CONFLICT


def test_an_admin_reads_what_is_withheld_on_purpose(held):
    api, agent = Api(an_api_key(held.workspace, "read", "write", "admin")), Api(an_api_key(held.workspace))

    read = {id: api.get(f"items/{id}/quarantine/") for id in (held.id, held.leaf, held.above, held.file_id)}

    assert {reply.status for reply in read.values()} == {200}
    assert all(SECRET in read[id].body["text"] for id in (held.id, held.leaf, held.above))
    assert (read[held.id].body["message"]["author"], read[held.id].body["message"]["quarantined"]) == (AUTHOR, True)
    assert FILE in read[held.file_id].body["text"]
    assert SECRET in lcm("read-quarantined", held.id).out
    assert agent.get(f"items/{held.id}/quarantine/").status == 403
    assert api.get(f"items/msg_{held.message_id - 1}/quarantine/").body["code"] == "not_quarantined"
    assert not [each.tool for each in CATALOGUE if each.method == "read_quarantined" and each.agent_tool]
    acts = AuditLog(held.scope).list_acts(act=Act.READ_QUARANTINED)
    assert {act.target for act in acts} == set(read) and len(acts) == 5


def test_a_released_message_is_read_again(held):
    [number] = [each.quarantine_id for each in Quarantines.from_settings().list_quarantines() if each.target == held.id]

    Quarantines.from_settings().release(quarantine_id=number)

    assert SECRET in a_store(held.workspace).get_message(message_id=held.message_id).content
    assert SECRET in lcm("grep", "harbour door").out


def test_each_reading_gives_the_words_once_all_is_released(held):
    api = Api(an_api_key(held.workspace))
    release_all()

    for operation, given in readings(held):
        text = json.dumps(api.perform(operation, given).body)
        shown = lcm(*as_arguments(operation, given))

        is_found = any(word in text for word in (SECRET, AUTHOR, FILE, ENCODED))
        is_shown = any(word in shown.out for word in (SECRET, AUTHOR, FILE))
        expected = operation.tool not in WITHOUT_TEXTS
        assert (is_found, is_shown) == (expected, expected), (operation.tool, given, text, shown.err)


def test_a_message_with_a_quarantined_part_is_withheld_whole(held):
    store = a_store(held.workspace)
    parts = [NewPart(part_type=PartType.TEXT, text_content=text) for text in ("It opens", "at nine")]
    message = NewMessage(role=Role.USER, content="It opens at nine", parts=tuple(parts))
    store.append_messages(conversation_id=held.conversation_id, messages=[message])
    [other] = store.list_messages(conversation_id=held.conversation_id, after_seq=19)
    part = other.parts[1]
    Quarantines.from_settings().quarantine(id=part.part_id, reason="It was altered.")

    [withheld] = store.list_messages(conversation_id=held.conversation_id, after_seq=19)

    assert withheld.quarantined and withheld.content == "" and withheld.parts[0].text_content is None
    assert (withheld.seq, withheld.role, withheld.content_hash) == (other.seq, other.role, other.content_hash)
    assert Quarantines.from_settings().read_quarantined(id=part.part_id).text == other.content


def test_a_text_that_became_a_file_is_withheld_with_its_message(held):
    store, api = a_store(held.workspace), Api(an_api_key(held.workspace))
    said = [NewMessage(role=Role.USER, content=f"{SECRET} is a line of a very long log\n" * 20_000)]
    [long] = store.append_messages(conversation_id=held.conversation_id, messages=said).messages
    file_id = FileReference.objects.get(message_id=long.message_id).file_id
    held_back = Quarantines.from_settings().quarantine(id=long.id, reason="It was altered.")

    asked: list[tuple[str, dict[str, Any]]] = [
        ("lcm_file", {"file_id": file_id}),
        ("lcm_read_file", {"file_id": file_id}),
        ("lcm_read_lines", {"file_id": file_id}),
        ("lcm_describe", {"id": file_id}),
        ("lcm_files", {"conversation_id": held.conversation_id}),
        ("lcm_grep", {"query": "log", "scope": "all"}),
        ("lcm_message", {"message_id": long.message_id, "whole": True}),
    ]
    for tool, given in asked:
        reply = api.perform(OPERATIONS[tool], given)
        assert reply.status in (200, 409), (tool, reply.body)
        assert_no_secret_in(json.dumps(reply.body), given)
    assert SECRET in Quarantines.from_settings().read_quarantined(id=file_id).text
    Quarantines.from_settings().release(quarantine_id=held_back.quarantine_id)
    assert SECRET in json.dumps(api.perform(OPERATIONS["lcm_read_lines"], {"file_id": file_id}).body)


def test_a_message_is_withheld_with_a_file_that_its_text_became(held):
    store, api = a_store(held.workspace), Api(an_api_key(held.workspace))
    one = {"conversation_id": held.conversation_id}
    log = NewMessage(
        role=Role.TOOL,
        parts=(
            NewPart(
                part_type=PartType.TOOL,
                tool_call_id="call_1",
                tool_name="read_file",
                tool_title=FILE,
                tool_output=f"{SECRET} is a line of a very long log\n" * 20_000,
                tool_status="completed",
            ),
        ),
    )
    [long] = store.append_messages(**one, messages=[log]).messages
    before = json.dumps(api.perform(OPERATIONS["lcm_message"], {"message_id": long.message_id}).body)
    leaf = a_summary_of(store, held.conversation_id, seqs=range(long.seq, long.seq + 1), content=f"A log of {SECRET}.")
    [file_id] = FileReference.objects.filter(message_id=long.message_id).values_list("file_id", flat=True).distinct()
    held_back = Quarantines.from_settings().quarantine(id=file_id, reason="It was altered.")
    [again] = store.append_messages(**one, messages=[log]).messages

    asked: list[tuple[str, dict[str, Any]]] = [
        ("lcm_messages", {**one, "after_seq": long.seq - 1}),
        *(("lcm_message", {"message_id": each.message_id, "whole": True}) for each in (long, again)),
        ("lcm_grep", {**one, "query": "large_file", "scope": "all"}),
        ("lcm_grep", {**one, "query": "log", "scope": "all", "mode": "regex"}),
        *(("lcm_describe", {"id": id}) for id in (long.id, again.id, leaf.summary_id)),
        ("lcm_expand", {"summary_id": leaf.summary_id, "include_messages": True}),
        ("lcm_expand_range", {**one, "from_seq": long.seq, "to_seq": again.seq, "only_messages": True}),
        ("lcm_assemble", one),
        ("lcm_recall", {**one, "budget": 9000, "share": 1}),
        ("lcm_impact", {"id": long.id, "direction": "downstream"}),
    ]
    assert SECRET in before and FILE in before
    for tool, given in asked:
        reply = api.perform(OPERATIONS[tool], given)
        assert reply.status == 200, (tool, reply.body)
        assert_no_secret_in(json.dumps(reply.body), {tool: given})
    assert SECRET in Quarantines.from_settings().read_quarantined(id=again.id).text
    Quarantines.from_settings().release(quarantine_id=held_back.quarantine_id)
    for each in (long, again):
        assert SECRET in json.dumps(api.perform(OPERATIONS["lcm_message"], {"message_id": each.message_id}).body)


def test_agents_get_no_items_of_a_quarantined_file(held):
    claims = AgenticClaims.from_settings(held.scope)

    assert claims.claim(run_id=held.run_id, worker="agent").items == ()
    MapWorker.from_settings().sweep()
    run = MapOperator.from_settings(held.scope).get_run(run_id=held.run_id)
    assert (run.state, run.pause_reason) == ("paused", "quarantine")
    last = MapEvent.objects.filter(run_id=held.run_id).latest("seq")
    assert (last.event, last.actor, last.details) == ("paused", "system", {"reason": "quarantine"})
    with pytest.raises(Conflict, match="quarantined"):
        MapOperator.from_settings(held.scope).submit(
            prompt="Again {{item}}.", output_schema={}, kind="agentic", retain="books", input_file_id=held.file_id
        )


def test_a_run_is_not_resumed_before_its_input_file_is_released(held):
    operator, api = MapOperator.from_settings(held.scope), Api(an_api_key(held.workspace))
    AgenticClaims.from_settings(held.scope).claim(run_id=held.run_id, worker="agent")

    with pytest.raises(Conflict, match=f"{held.file_id}.* release the file"):
        operator.resume(run_id=held.run_id, budget_tokens=1_000)
    refused = api.perform(OPERATIONS["lcm_map_resume"], {"run_id": held.run_id})
    shown = lcm("--json", "map", "resume", held.run_id)

    assert (refused.status, refused.body["code"]) == (409, "quarantined")
    assert (shown.exit_code, shown.problem["code"]) == (CONFLICT, "quarantined")
    run = operator.get_run(run_id=held.run_id)
    assert (run.state, run.pause_reason, run.budget_tokens) == ("paused", "quarantine", None)
    release_all()
    assert operator.resume(run_id=held.run_id).state == "queued"


def test_items_of_a_quarantined_file_come_without_what_is_in_it_or_was_made_from_it(held):
    api, claims = Api(an_api_key(held.workspace)), AgenticClaims.from_settings(held.scope)
    [number] = [each.quarantine_id for each in Quarantines.from_settings().list_quarantines() if each.target != held.id]
    Quarantines.from_settings().release(quarantine_id=number)
    file = LargeFileService.from_settings(held.scope).store(
        conversation_id=held.conversation_id, content=f'"{FILE}"\n'.encode() * 3, file_name="three.jsonl"
    )
    run = MapOperator.from_settings(held.scope).submit(
        prompt="Repeat {{item}}.", output_schema={"type": "string"}, kind="agentic", retain="the books", max_attempts=2,
        input_file_id=file.file_id,
    )  # fmt: skip
    done, failed, _ = claims.claim(run_id=run.run_id, worker="agent", count=3).items
    claims.complete(item_id=done.item_id, fence=done.fence, output=FILE)
    with pytest.raises(Invalid):
        claims.complete(item_id=failed.item_id, fence=failed.fence, output={"is": FILE})
    asked = [OPERATIONS["lcm_map_items"], OPERATIONS["lcm_map_output"]]
    before = [api.perform(each, {"run_id": run.run_id}).body["items"] for each in asked]

    held_back = Quarantines.from_settings(held.scope).quarantine(id=file.file_id, reason="It was altered.")

    assert all(FILE in json.dumps(item) and not item["quarantined"] for items in before for item in items)
    for operation, items in zip(asked, before, strict=True):
        withheld = api.perform(operation, {"run_id": run.run_id}).body["items"]
        assert [item["position"] for item in withheld] == [item["position"] for item in items]
        assert all(item["quarantined"] and "output" not in item for item in withheld)
        shown = lcm("map", operation.method.removeprefix("list_"), run.run_id)
        assert shown.exit_code == 0
        assert_no_secret_in(json.dumps(withheld) + shown.out + shown.err, {"tool": operation.tool})
    Quarantines.from_settings().release(quarantine_id=held_back.quarantine_id)
    assert [api.perform(each, {"run_id": run.run_id}).body["items"] for each in asked] == before


def test_a_ledger_holds_what_is_quarantined(held):
    ledger = io.BytesIO()

    Ledgers.from_settings(held.scope).export(ledger, name="harbour", conversation_id=held.conversation_id)

    assert SECRET.encode() in ledger.getvalue() and ENCODED.encode() in ledger.getvalue()


def test_a_page_that_stopped_inside_a_message_ends_when_it_is_quarantined(held):
    texts = "word " * 3_000
    store = a_store(held.workspace)
    [long] = store.append_messages(
        conversation_id=held.conversation_id, messages=[NewMessage(role=Role.USER, content=texts)]
    ).messages
    ask = {"from_seq": long.seq, "to_seq": long.seq, "depth": 1, "include_messages": True}
    reading = Expansion(RetrievalPolicy.from_settings(), store.tokens, held.scope)
    page = {**ask, "conversation_id": held.conversation_id, "only_messages": True, "keep_ends": False, "token_cap": 100}
    first = reading.expand_range(**page, cursor=None)
    Quarantines.from_settings().quarantine(id=long.id, reason="It was altered.")

    second = reading.expand_range(**page, cursor=first.cursor)

    assert first.cursor and second.cursor is None
    assert [(item.content, item.quarantined, item.complete) for item in second.items] == [("", True, True)]
