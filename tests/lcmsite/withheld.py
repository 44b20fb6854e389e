"""What is quarantined, and every way to read it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from compaction.history.session_history import SessionHistory
from conversations.files.uploads import UploadService
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.repairs.quarantines import Quarantines
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.operations import OPERATIONS
from retrieval.map.map_operator import MapOperator
from tests.factories import a_conversation, a_store, a_workspace
from tests.summaries import a_summary_of

# Of the message, of each of its fields, and of the file.
SECRET = "zanzibar-qz7751"
AUTHOR = "mallory-8862"
FILE = "madagascar-9973"
CONTENT = f'{{"harbour": "{FILE}"}}\n'.encode()
ENCODED = base64.b64encode(CONTENT).decode()


def withheld_things() -> SimpleNamespace:
    """A quarantined message and file, and two depths of summaries of the message."""
    workspace = a_workspace()
    scope = Scope(workspace.pk)
    texts = (f"message {n} about the harbour" for n in range(1, 5))
    conversation_id = a_conversation(*texts, session_id="harbour", workspace=workspace, project="piers").conversation_id
    store, text = a_store(workspace), f"The harbour's door opens with {SECRET}."
    secret = NewMessage(
        Role.USER, text, author=AUTHOR, metadata={"raw": SECRET}, parts=(NewPart(PartType.TEXT, text_content=text),)
    )
    others = [NewMessage(Role.USER, f"message {n} about the harbour") for n in range(6, 20)]
    appended, *_ = store.append_messages(conversation_id=conversation_id, messages=[secret, *others]).messages
    leaf = a_summary_of(store, conversation_id, seqs=range(1, 7), content=f"The harbour: {SECRET}.")
    above = a_summary_of(store, conversation_id, summaries=[leaf], content=f"Again the harbour: {SECRET}.")
    session = SessionHistory.from_settings(scope).summarize_session(conversation_id=conversation_id).summary
    later = a_conversation("Good morning.", session_id="later", workspace=workspace, project="piers")
    uploads = UploadService.from_settings(scope)
    begun = uploads.begin(conversation_id=conversation_id, byte_size=len(CONTENT), file_name=f"{FILE}.jsonl")
    uploads.put_chunk(upload_id=begun.upload_id, offset=0, content=CONTENT)
    file = uploads.finish(upload_id=begun.upload_id)
    run = MapOperator.from_settings(scope).submit(
        prompt="Label {{item}}.", output_schema={}, kind="agentic", retain="the books", input_file_id=file.file_id,
        conversation_id=conversation_id,
    )  # fmt: skip
    for id in (appended.id, file.file_id):
        Quarantines.from_settings(scope).quarantine(id=id, reason="It was altered.")
    return SimpleNamespace(
        workspace=workspace,
        scope=scope,
        conversation_id=conversation_id,
        message_id=appended.message_id,
        id=appended.id,
        leaf=leaf.summary_id,
        above=above.summary_id,
        session=session.summary_id,
        later=later.conversation_id,
        upload_id=begun.upload_id,
        file_id=file.file_id,
        run_id=run.run_id,
    )


def readings(held: SimpleNamespace) -> Iterator[tuple[Operation, dict[str, Any]]]:
    """Every way to read a text, asked so that it would give the withheld ones."""
    one = {"conversation_id": held.conversation_id}
    whole = {**one, "from_seq": 1, "to_seq": 19}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("lcm_messages", one),
        ("lcm_message", {"message_id": held.message_id}),
        ("lcm_message", {"message_id": held.message_id, "whole": True}),
        ("lcm_items", one),
        ("lcm_grep", {**one, "query": "harbour door", "scope": "all"}),
        ("lcm_grep", {"query": "harbour", "scope": "all", "sort": "recency"}),
        ("lcm_grep", {**one, "query": "zanzi.*7", "scope": "all", "mode": "regex"}),
        ("lcm_grep", {"query": "madagascar", "scope": "files"}),
        ("lcm_about", {**one, "entity": "harbour"}),
        *(("lcm_describe", {"id": id}) for id in (held.id, held.leaf, held.above, held.file_id, held.session)),
        ("lcm_describe", {"id": held.id, "token_cap": 5}),
        ("lcm_describe_range", whole),
        ("lcm_impact", {"id": held.file_id}),
        ("lcm_impact", {"id": held.id}),
        ("lcm_expand", {"summary_id": held.above, "depth": -1, "include_messages": True}),
        ("lcm_expand_range", {**whole, "depth": -1, "include_messages": True}),
        ("lcm_expand_range", {**whole, "only_messages": True}),
        ("lcm_expand_query", {"question": "How does the harbour's door open?"}),
        ("lcm_expand_query", {"question": "What opens the door?", "ids": [held.id, held.above]}),
        ("lcm_lineage", one),
        ("lcm_lineage_window", one),
        ("lcm_assemble", one),
        ("lcm_assemble", {**one, "query": "harbour door", "format": "openai"}),
        ("lcm_recall", {**one, "budget": 9000, "share": 1}),
        ("lcm_recall", {**one, "query": "harbour door"}),
        ("lcm_timeline", {}),
        ("lcm_grep_sessions", {"query": "zanzibar"}),
        ("lcm_expand_session", {"summary_id": held.session, "depth": -1, "include_messages": True}),
        ("lcm_session_ago", {"conversation_id": held.later}),
        ("lcm_show_upload", {"upload_id": held.upload_id}),
        ("lcm_file", {"file_id": held.file_id}),
        ("lcm_files", one),
        ("lcm_read_file", {"file_id": held.file_id}),
        ("lcm_read_lines", {"file_id": held.file_id}),
        ("lcm_map_items", {"run_id": held.run_id}),
    ]
    for tool, given in asked:
        yield OPERATIONS[tool], given


def assert_no_secret_in(text: str, given: dict[str, Any]) -> None:
    assert not [word for word in (SECRET, "qz7751", AUTHOR, FILE, ENCODED) if word in text], given
