"""Words outside of messages that may quote them: erased along with them, or named in the preview."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models

from compaction.hosts.branching import Branches
from compaction.hosts.host_service import HostCompaction
from compaction.models import CompactionPlan
from compaction.plans.plan_store import CompactionPlans
from conversations.files.uploads import UploadService
from conversations.models import Conversation, MessagePart, Quarantine, Workspace
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.store.journal import Journal
from conversations.types import NewMessage, Role
from integrity.models import RepairStep
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure_extent import SQL, Extent
from lcmsite.catalogue.json_text import as_ascii_json
from lcmsite.ops.documents import PROJECT
from retrieval.delegation.expand_query import Delegation
from retrieval.models import Grant
from tests.factories import a_conversation, a_store
from tests.integrity.erasing import SECRET, a_secret_conversation, erased, erasures, everything_stored, scope, storage  # noqa: F401
from tests.integrity.repairing import a_plan
from tests.statements import analyze, rows_handled

pytestmark = pytest.mark.django_db


def quoted_elsewhere() -> int:
    """A conversation whose secret is quoted in everything beside its messages that takes words."""
    conversation_id = a_secret_conversation()
    said = {message.seq: message.id for message in a_store().list_messages(conversation_id=conversation_id)}
    Conversation.objects.filter(pk=conversation_id).update(title=f"About {SECRET}", metadata={"about": SECRET})
    a_store().configure_conversation(
        conversation_id=conversation_id,
        overrides={"summary_instructions": f"Keep what {SECRET} says.", "fresh_tail_count": 4},
    )
    CompactionPlans.from_settings(scope()).plan(conversation_id=conversation_id)
    Quarantines(scope()).quarantine(id=said[21], reason=f"{SECRET} wants it gone")
    Quarantines(scope()).quarantine(id=said[40], reason="it is wrong")
    Delegation.from_settings(scope()).expand_query(question=f"Where does {SECRET} live?", ids=[said[20]])
    Delegation.from_settings(scope()).expand_query(question="Where is the harbour?", ids=[said[40]])
    HostCompaction.from_settings(scope()).record_boundary(
        conversation_id=conversation_id, host_reference="the first", metadata={"about": SECRET}
    )
    Journal.from_settings(scope()).append_entries(conversation_id=conversation_id, entries=[{"said": SECRET}])
    UploadService.from_settings(scope()).begin(
        conversation_id=conversation_id, byte_size=10, file_name=f"{SECRET}.txt", mime_type="text/plain"
    )
    return conversation_id


def told(preview) -> dict[str, bool]:
    return {each.what: each.is_erased for each in preview.texts_elsewhere}


def test_with_all_of_a_conversation_every_word_that_it_brought_along_goes(erasures):  # noqa: F811
    conversation_id = quoted_elsewhere()
    another = a_conversation(title="About boats", overrides={"summary_instructions": "Keep boats."})
    assert SECRET in everything_stored()

    preview, _ = erased(erasures, conversation_id)

    assert SECRET not in everything_stored()
    assert a_store().get_conversation(conversation_id=another.conversation_id) == another
    row = Conversation.objects.get(pk=conversation_id)
    assert (row.title, row.metadata, row.overrides) == (None, {}, {"fresh_tail_count": 4})
    assert {plan.policy["summary_instructions"] for plan in CompactionPlan.objects.all()} == {""}
    assert set(Quarantine.objects.values_list("reason", flat=True)) == {""}
    assert set(Grant.objects.values_list("question", flat=True)) == {""}
    stays = {what for what, is_erased in told(preview).items() if not is_erased}
    assert stays == {"unfinished upload", "host_reference of a boundary", "session_id of the conversation"}
    assert SECRET not in as_ascii_json(preview)


def test_with_a_few_messages_what_was_said_of_them_goes_and_the_rest_is_named(erasures):  # noqa: F811
    conversation_id = quoted_elsewhere()

    preview, _ = erased(erasures, conversation_id, from_seq=20, to_seq=22)

    assert list(Quarantine.objects.order_by("pk").values_list("reason", flat=True)) == ["", "it is wrong"]
    assert list(Grant.objects.order_by("created_at").values_list("question", flat=True)) == [
        "",
        "Where is the harbour?",
    ]
    assert told(preview) == {
        "title of the conversation": False,
        "metadata of the conversation": False,
        "summary_instructions of the conversation": False,
        "summary_instructions kept with a plan": False,
        "metadata of a boundary": False,
        "entry of the host's journal": False,
        "reason of a quarantine": True,
        "reason of a quarantine of something else": False,
        "question of a grant": True,
        "unfinished upload": False,
        "host_reference of a boundary": False,
        "session_id of the conversation": False,
    }


def test_what_a_repair_keeps_of_a_part_goes_with_its_message_and_all_with_the_conversation(erasures):  # noqa: F811
    conversation_id = a_secret_conversation(compacted=False)
    part = MessagePart.objects.get(tool_name="look_up")
    given = {"operation": "restore", "risk": "low", "reversible": True, "before": {"tool_output": SECRET}}
    given |= {"plan_id": a_plan().repair_id, "conversation_id": conversation_id}
    for ordinal, target in enumerate((part.part_id, "another")):
        RepairStep.objects.create(ordinal=ordinal, target=target, **given)

    erased(erasures, conversation_id, from_seq=20, to_seq=22)

    assert [each.before for each in RepairStep.objects.order_by("ordinal")] == [{}, given["before"]]
    erased(erasures, conversation_id)
    assert SECRET not in everything_stored()


def test_every_column_that_can_hold_words_is_in_the_table_of_what_an_erasure_does():
    texts = (models.TextField, models.CharField, models.JSONField, models.BinaryField, ArrayField)
    columns = {
        (model._meta.db_table, field.column)
        for room in ("conversations", "compaction", "retrieval", "integrity", "lcmsite")
        for model in apps.get_app_config(room).get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, texts)
    }

    rows = re.findall(r"^\| `(\w+)` \|(.+)$", (PROJECT / "integrity/retention/README.md").read_text(), re.M)
    named = [(table, column) for table, cells in rows for column in re.findall(r"`(\w+)`", cells)]

    assert sorted(named) == sorted(columns)


def test_the_preview_lists_conversations_with_copies_of_the_texts(erasures):  # noqa: F811
    conversation_id = a_conversation("My number is 0176 5550123.", "Noted.", "Thanks.").conversation_id
    fork = Branches.from_settings(scope()).fork_conversation(conversation_id=conversation_id, session_id="a fork")
    other = a_conversation("Thanks.", session_id="another talk")
    elsewhere = Scope(Workspace.objects.create(name="elsewhere").pk)
    ConversationStore.from_settings(elsewhere).append_messages(
        conversation_id=ConversationStore.from_settings(elsewhere).open_conversation(session_id="x").conversation_id,
        messages=[NewMessage(Role.USER, "Thanks.")],
    )

    whole = erasures.preview_erasure(conversation_id=conversation_id)
    last = erasures.preview_erasure(conversation_id=conversation_id, from_seq=3, to_seq=3)
    erasures.erase(erasure_id=whole.erasure_id, confirmation=whole.confirmation)
    of_fork = erasures.preview_erasure(conversation_id=fork.conversation_id)

    counts = [(each.session_id, each.message_count) for each in whole.copies_elsewhere]
    assert counts == [("a fork", 3), ("another talk", 1)]
    assert [each.message_count for each in last.copies_elsewhere] == [1, 1]
    assert [each.conversation_id for each in of_fork.copies_elsewhere] == [other.conversation_id]


def test_the_rows_read_for_copies_grow_with_the_messages_that_share_a_text(erasures):  # noqa: F811
    a_conversation(*["ok"] * 300)
    conversation_id = a_conversation(*["ok"] * 300).conversation_id
    extent = Extent.of(conversation_id, (), (), is_whole=True)
    analyze()

    rows = rows_handled(SQL["copies_elsewhere"], {"conversation": conversation_id, "ids": extent.ids})

    assert [each.message_count for each in extent.copies_elsewhere()] == [300]
    assert rows < 6_000
