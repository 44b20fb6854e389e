"""`lcm anchor`, and the ledger compared with what it wrote; exports over every face are on record."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test import Client

from conversations.models import AuditEntry
from tests.factories import a_conversation
from tests.integrity.rewriting import rewrite
from tests.lcmsite.callers import an_api_key, lcm


@pytest.fixture
def conversation_id(db) -> int:
    return a_conversation("pay 100 boats", "done", session_id="harbour").conversation_id


def test_an_anchor_is_made_listed_shown_and_verified(conversation_id, settings, tmp_path):
    copy = tmp_path / "copy.jsonl"

    made = lcm("--json", "anchor", "-o", str(copy))
    listed = lcm("--json", "anchor", "list")
    shown = lcm("anchor", "show")
    again = lcm("--json", "anchor", "-o", str(copy))
    key = lcm("--json", "anchor", "key")
    verified = lcm("--json", "anchor", "verify", str(copy), "--public-key", key.json["public_key"])

    assert (made.exit_code, listed.exit_code, shown.exit_code, verified.exit_code) == (0, 0, 0, 0)
    assert shown.out.encode() == copy.read_bytes()
    assert [each["file"] for each in listed.json["items"]] == [made.json["file"]]
    assert made.json["file"].startswith(str(settings.ANCHOR_DIR))
    assert (again.exit_code, again.problem["code"]) == (4, "file_exists")
    assert verified.json["is_clean"] and verified.json["key_is_trusted"]
    assert (verified.json["conversations"], verified.json["messages"]) == (1, 2)
    assert "BEGIN PUBLIC KEY" in lcm("anchor", "key").out


def test_a_rewritten_history_is_accepted_without_an_anchor_and_refused_with_it(conversation_id, tmp_path):
    anchor, ledger, kept = (str(tmp_path / f"{name}.jsonl") for name in ("anchor", "rewritten", "kept"))
    head = lcm("--json", "ledger", "export", "harbour", "-o", kept).json["line_hash"]
    connection.check_constraints()
    lcm("anchor", "-o", anchor)
    rewrite(conversation_id, seq=1, text="pay 900 boats")
    connection.check_constraints()
    lcm("ledger", "export", "harbour", "-o", ledger)

    for accepts in (
        ("check",),
        ("ledger", "verify", ledger),
        ("ledger", "verify", "--live"),
        ("ledger", "verify", kept, "--anchor", anchor, "--expect", head),
    ):
        assert lcm(*accepts).exit_code == 0, accepts
    for given, code in (
        (("ledger", "verify", ledger, "--anchor", anchor), "anchor_mismatch"),
        (("ledger", "verify", "--live", "harbour", "--anchor", anchor), "anchor_mismatch"),
        (("ledger", "verify", ledger, "--expect", head), "unexpected_head"),
        (("anchor", "verify", anchor), "anchor_mismatch"),
        (("anchor", "verify"), "anchor_mismatch"),
    ):
        refused = lcm(*given)
        assert (refused.exit_code, f"[{code}]" in refused.out) == (1, True), given


def test_what_a_signature_proves_is_said(conversation_id, tmp_path):
    anchor, ledger = str(tmp_path / "anchor.jsonl"), str(tmp_path / "ledger.jsonl")
    lcm("ledger", "export", "harbour", "-o", ledger)
    lcm("anchor", "-o", anchor)
    key = lcm("--json", "anchor", "key").json["public_key"]
    verify = ("ledger", "verify", ledger, "--anchor", anchor)

    anybodys, ours, others = (lcm(*verify, *given) for given in ((), ("--public-key", key), ("--public-key", "0" * 64)))

    assert (anybodys.exit_code, ours.exit_code, others.exit_code) == (0, 0, 1)
    assert "proves only what the holder of that key signed" in anybodys.out
    assert "trusted key" in ours.out and "proves only" not in ours.out
    assert "[anchor_signature_invalid]" in others.out and "line 0" not in others.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ledger", "verify", "LEDGER", "--anchor", "LEDGER"], "malformed_anchor"),
        (["ledger", "verify", "LEDGER", "--anchor", "/nowhere"], "unreadable_file"),
        (["ledger", "verify", "LEDGER", "--expect", "abc"], "usage"),
        (["ledger", "verify", "LEDGER", "--public-key", "0" * 64], "usage"),
        (["anchor", "verify", "LEDGER"], "malformed_anchor"),
        (["anchor", "verify", "/nowhere"], "unreadable_file"),
        (["anchor", "verify"], "not_found"),
        (["anchor", "show"], "not_found"),
        (["anchor", "verify", "LEDGER", "--public-key", "LEDGER"], "unusable_key"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(conversation_id, tmp_path, arguments, code):
    ledger = tmp_path / "ledger.jsonl"
    lcm("ledger", "export", "harbour", "-o", str(ledger))

    refused = lcm("--json", *(str(ledger) if each == "LEDGER" else each for each in arguments))

    assert refused.problem["code"] == code


@pytest.mark.parametrize("verb", [[], ["list"], ["show"], ["key"], ["verify"]])
def test_anchors_are_for_the_operator(conversation_id, verb):
    refused = lcm("--json", "--api-key", an_api_key(None, "admin"), "anchor", *verb)

    assert refused.problem["code"] == "forbidden"


def test_an_export_over_rest_is_an_act_of_its_key(conversation_id):
    key = an_api_key(None, "read")

    answer = Client().get(
        f"/api/v1/conversations/{conversation_id}/ledger/", headers={"Authorization": f"Bearer {key}"}
    )
    assert not AuditEntry.objects.filter(act="begin_export").exists()
    ledger = b"".join(answer.streaming_content)

    acts = AuditEntry.objects.filter(conversation_id=conversation_id).order_by("audit_id")
    assert [act.act for act in acts] == ["begin_export", "export_ledger"]
    assert {act.actor.partition(" ")[0] for act in acts} == {"key"}
    assert acts[1].detail["line_hash"] == json.loads(ledger.splitlines()[-1])["line_hash"]
