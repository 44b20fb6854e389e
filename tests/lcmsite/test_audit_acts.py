"""What administrators do is in the audit log, whichever face they do it through, and nobody else can read it."""

from __future__ import annotations

import json

import pytest

from conversations.models import Workspace
from lcmsite.access import keys
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import Api, an_api_key, lcm

pytestmark = pytest.mark.django_db


def acts(api: Api) -> list[tuple[str, str, str]]:
    return [(each["actor"], each["act"], each["target"]) for each in api.get("audit-log/").body["items"]]


def test_keys_models_and_rules_are_changed_on_record():
    a_workspace()
    admin = an_api_key(None, "admin")
    api = Api(admin)
    api_key_id = keys.caller_of(admin).api_key_id

    made = json.loads(lcm("--json", "key", "create", "laptop", "--scope", "write").out)["record"]["api_key_id"]
    lcm("--api-key", admin, "key", "revoke", str(made))
    lcm("--api-key", admin, "key", "revoke", str(made))
    # Models are the site's, so the command line resets them without a key.
    assert api.post("models/chat/reset/", {}).status == 403
    assert lcm("reset-model", "chat").exit_code == 0
    api.ask("PUT", "retention/", {"cold_after_days": 90})

    by_key = f"key {api_key_id}"
    assert acts(api) == [
        (by_key, "set_retention", ""),
        ("operator", "reset_endpoint", "chat"),
        (by_key, "revoke_key", f"key {made}"),
        ("operator", "issue_key", f"key {made}"),
        ("system", "issue_key", by_key),
    ]


def test_moves_and_erasures_are_on_record_with_who_asked_for_them():
    conversation_id = a_conversation("one", "two", session_id="harbour").conversation_id
    admin = an_api_key(None, "admin")
    api = Api(admin)

    api.post(f"conversations/{conversation_id}/archive/", {})
    lcm("thaw", "harbour")
    preview = api.post(f"conversations/{conversation_id}/erasures/", {"from_seq": 1, "to_seq": 1}).body
    done = lcm("--json", "erase", preview["erasure_id"], preview["confirmation"])
    told = json.loads(lcm("--json", "audit", "--conversation-id", "harbour").out)["items"]

    by_key = f"key {keys.caller_of(admin).api_key_id}"
    assert done.exit_code == 0, done.err
    assert [(each["actor"], each["act"]) for each in told] == [
        ("operator", "erase"),
        (by_key, "preview_erasure"),
        ("operator", "thaw"),
        (by_key, "archive"),
    ]


def test_acts_are_listed_page_by_page_and_not_those_of_another_workspace():
    mine, theirs = an_api_key(None, "admin"), an_api_key(a_workspace("elsewhere"), "admin")
    Api(theirs).ask("PUT", "retention/", {"cold_after_days": 9})
    for days in range(1, 6):
        Api(mine).ask("PUT", "retention/", {"cold_after_days": days})

    first = Api(mine).get("audit-log/", limit=3, act="set_retention").body
    second = Api(mine).get("audit-log/", act="set_retention", cursor=first["next_cursor"]).body

    assert [each["detail"]["after"] for each in (*first["items"], *second["items"])] == [5, 4, 3, 2, 1]
    assert Workspace.objects.get(name="default").cold_after_days == 5
