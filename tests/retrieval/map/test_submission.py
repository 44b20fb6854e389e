"""What a run is made from is checked as a whole before anything is stored."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from conversations.errors import Conflict, Invalid, LcmError, NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import LargeFile
from conversations.scope import Scope
from conversations.store.pages import MOST_PAGE_BYTES
from retrieval.delegation.grants import Grants
from retrieval.map.item_prompt import item_prompt
from retrieval.map.map_operator import MapOperator
from retrieval.map.models import MapEvent, MapItem, MapRun
from retrieval.map.types import MapKind
from tests.factories import a_conversation, a_workspace
from tests.retrieval.map.labels import PROMPT, SCHEMA, a_run, an_item

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"prompt": "Label this."}, "must contain {{item}}"),
        ({"prompt": "{{item}} \x00"}, "prompt must be"),
        ({"output_schema": {"type": "thing"}}, "output_schema"),
        ({"output_schema": {"$ref": "https://example.com/s.json"}}, "nothing is fetched"),
        ({"items": []}, "no items"),
        ({"items": ["x"] * 1001}, "a request takes at most 1,000"),
        ({"items": [float("nan")]}, "JSON values"),
        ({"items": [1], "input_file_id": "file_0"}, "either"),
        ({"items": None}, "either"),
        ({"budget_tokens": 2**60 + 1}, "budget_tokens must be"),
        ({"prompt": "{{item}}" * 9_000, "items": ["x" * 2_000]}, "write {{item}} fewer times"),
        ({"model": "gpt"}, "'gpt' is unknown"),
        ({"model": "anthropic"}, "LCM_ANTHROPIC"),
        ({"idempotency_key": ""}, "idempotency_key"),
    ],
)
def test_a_request_that_cannot_be_carried_out_stores_nothing(operator, changed, sentence):
    conversation_id = a_conversation("hello").conversation_id

    with pytest.raises(Invalid) as refused:
        a_run(operator, 2, conversation_id=conversation_id, **changed)

    assert sentence in str(refused.value)
    assert not MapRun.objects.exists() and not MapItem.objects.exists() and not LargeFile.objects.exists()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("in.jsonl", b'{"id": 1}\n{"id": \n', "Line 2"),
        ("in.json", b"[1, 2, NaN]", "Line 1"),
        ("in.jsonl", b"\xff\xfe", "UTF-8"),
        ("in.jsonl", b" \n\n", "no items"),
        ("in.jsonl", b"[" * 5000, "Line 1"),
        ("in.jsonl", b"1e999", "Line 1"),
        ("in.json", b"[" + b"1," * 50_001 + b"?", "more than 50,000 items"),
        ("in.jsonl", b'"' + b"x" * 200_001 + b'"', "Line 1 has more than"),
    ],
)
def test_every_line_of_a_file_is_checked_first(operator, name, content, sentence):
    conversation_id = a_conversation("hello").conversation_id
    file = LargeFileService.from_settings().store(conversation_id=conversation_id, content=content, file_name=name)

    with pytest.raises(Invalid) as refused:
        a_run(operator, 0, items=None, input_file_id=file.file_id)

    assert sentence in str(refused.value)
    assert not MapRun.objects.exists()


def test_items_are_kept_exactly_as_they_are_written(operator):
    conversation_id = a_conversation("hello").conversation_id
    content = '[ {"b": 1.50,\n "a": "\\u00e9\u2028"},\t"two", 1E2 , [ ] ]'.encode()
    file = LargeFileService.from_settings().store(conversation_id=conversation_id, content=content)

    run = a_run(operator, 0, items=None, input_file_id=file.file_id)

    texts = [item.input for item in operator.list_items(run_id=run.run_id)]
    assert texts == ['{"b": 1.50,\n "a": "\\u00e9\u2028"}', '"two"', "1E2", "[ ]"]


def test_the_same_key_is_the_same_run_and_another_request_a_conflict(operator):
    conversation_id = a_conversation("hello").conversation_id
    given = {"conversation_id": conversation_id, "idempotency_key": "today"}

    first, second = a_run(operator, 3, **given), a_run(operator, 3, **given)

    assert first.run_id == second.run_id
    assert MapItem.objects.count() == 3
    with pytest.raises(Conflict):
        a_run(operator, 4, **given)
    with pytest.raises(Conflict):
        a_run(operator, 3, **given, output_schema={})


@pytest.mark.parametrize("retain", ["", "  \n"])
def test_a_delegation_without_retention_is_refused(operator, retain):
    with pytest.raises(Invalid) as refused:
        operator.submit(
            kind=MapKind.AGENTIC, prompt=PROMPT, output_schema=SCHEMA, retain=retain, items=[1], conversation_id=1
        )

    assert str(refused.value) == "Delegation without retention violates scope-reduction invariant."


def test_a_delegated_caller_says_what_it_hands_over_and_what_it_keeps(operator):
    conversation = a_conversation("hello")
    grant = Grants.from_settings().issue(
        workspace_id=a_workspace().pk, question="Which?", item_ids=[], depth=1, token_cap=1000, seconds=60
    )
    given = {
        "prompt": PROMPT,
        "output_schema": SCHEMA,
        "retain": "the verdict",
        "items": [1],
        "conversation_id": conversation.conversation_id,
        "grant_id": grant.grant_id,
    }

    with pytest.raises(Invalid) as refused:
        operator.submit(kind=MapKind.AGENTIC, **given, delegated_scope="reading")
    run = operator.submit(kind=MapKind.AGENTIC, **given, delegated_scope="reading", kept_work="writing")

    assert refused.value.code == "no_scope_reduction" and "delegated_scope" in str(refused.value)
    assert (run.retain, run.delegated_scope, run.kept_work) == ("the verdict", "reading", "writing")
    events = list(MapEvent.objects.filter(run_id=run.run_id).order_by("seq").values_list("event", flat=True))
    assert events == ["submitted", "delegated"]
    Grants.from_settings().revoke_grant(grant_id=grant.grant_id)
    with pytest.raises(LcmError):
        operator.submit(kind=MapKind.AGENTIC, **given, delegated_scope="reading", kept_work="writing")


def test_runs_of_another_workspace_are_not_there(operator):
    run = a_run(operator, 1, idempotency_key="the first")
    stranger = MapOperator(Scope(a_workspace("other").pk))

    for call in (stranger.get_run, stranger.list_items, stranger.output, stranger.pause, stranger.cancel):
        with pytest.raises(NotFound):
            call(run_id=run.run_id)
    with pytest.raises(NotFound):
        a_run(stranger, 0, items=None, conversation_id=None, input_file_id=run.input_file_id)
    theirs = a_conversation("hello", workspace=a_workspace("other")).conversation_id
    assert a_run(stranger, 1, conversation_id=theirs, idempotency_key="the first").run_id != run.run_id


def test_the_record_says_what_was_done_and_cannot_be_changed(operator):
    run = a_run(operator, 2)
    operator.pause(run_id=run.run_id)
    operator.resume(run_id=run.run_id)

    events = MapEvent.objects.filter(run_id=run.run_id).order_by("seq")
    assert list(events.values_list("event", flat=True)) == ["submitted", "paused", "resumed"]
    for change in ("UPDATE map_events SET actor = 'x'", "DELETE FROM map_events", "TRUNCATE map_events"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(change)


def test_an_item_is_what_the_prompt_says_and_nothing_more(operator):
    prompt = item_prompt(prompt="a {{item}} b {{item}}", schema=SCHEMA, item='{"x": "{{item}}"}')

    assert prompt.user == 'a {"x": "{{item}}"} b {"x": "{{item}}"}'
    assert '"billing"' in prompt.system and an_item(0)["text"] not in prompt.system


def test_a_page_of_large_items_ends_by_their_bytes(operator):
    run = a_run(operator, 0, items=[str(n) * 190_000 for n in range(10)] * 5)
    MapItem.objects.update(state="done", output='"fine"', output_hash=b"0" * 32, finished_at=Now())

    pages, outputs, position, next_position = [], [], 0, 0
    while sum(map(len, pages)) < 50:
        pages.append(operator.list_items(run_id=run.run_id, after_position=position))
        position = pages[-1][-1].position
    while next_position is not None:
        page = operator.output(run_id=run.run_id, after_position=next_position, limit=35)
        outputs.append([item.position for item in page.items])
        next_position = page.next_position

    assert [len(page) for page in pages] == [44, 6]
    assert [item.position for page in pages for item in page] == list(range(1, 51))
    assert [len(page) for page in outputs] == [35, 15] and sum(outputs, []) == list(range(1, 51))
    assert all(sum(len(item.input) for item in page) <= MOST_PAGE_BYTES for page in pages)
