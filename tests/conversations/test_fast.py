"""What the tricks of `fast/` give is what the plain way gives."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Model

from conversations.models import Conversation, LargeFile, Message, Summary
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from tests.factories import a_conversation, a_store, a_workspace
from tests.summaries import a_summary_of


def values_of(row: Model) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name not in ("_state", "content_tsv")}


@pytest.mark.django_db
@pytest.mark.parametrize("is_narrow", [True, False])
def test_a_row_is_the_instance_that_the_orm_makes(is_narrow):
    store = a_store()
    number = a_conversation("hello").conversation_id
    store.configure_conversation(conversation_id=number, overrides={"max_depth": 3})
    message = store.create_message(
        conversation_id=number, message=NewMessage(Role.USER, "a\x00b", metadata={"b": [1.50], "a": None})
    )
    summary = a_summary_of(store, number, seqs=[1])
    LargeFile.objects.create(file_id="file_1", conversation_id=number, storage_uri="x", content_hash=b"\x00\x01")
    scope = Scope(a_workspace().pk if is_narrow else None)

    found: list[Model] = [
        scope.conversation(number),
        scope.message(message.message_id),
        scope.summary(summary.summary_id),
        scope.file("file_1"),
    ]

    expected = [kind._default_manager.get(pk=row.pk) for kind, row in
                zip((Conversation, Message, Summary, LargeFile), found, strict=True)]  # fmt: skip
    assert [values_of(row) for row in found] == [values_of(row) for row in expected]
    assert found == expected
    assert found[1].get_deferred_fields() == found[2].get_deferred_fields() == {"content_tsv"}
