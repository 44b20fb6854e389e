"""Anchors: what they say, who can verify them, and what they refuse."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import stat
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.db import connection
from django.utils import timezone

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, NotFound, Unavailable
from conversations.models import AuditEntry, AuditLink, Conversation
from integrity.anchors import anchor_file, signing
from integrity.anchors.anchoring import AnchorService
from integrity.anchors.expectations import Expected
from tests.conversations.appending import at_once
from tests.conversations.ledger import verifier
from tests.conversations.ledger.ledgers import exported, the_ledgers, verified
from tests.factories import a_conversation, a_workspace, say
from tests.integrity.breaking import breaking, checked
from tests.integrity.rewriting import rewrite, rewrite_act

pytestmark = pytest.mark.django_db


def service(**options) -> AnchorService:
    return AnchorService(**{**vars(AnchorService.from_settings()), **options})


def an_anchor() -> bytes:
    connection.check_constraints()
    return Path(service().make().file).read_bytes()


def codes(ledger: bytes, anchor: bytes, **given) -> list[str]:
    expected = Expected.of(anchor=("the anchor", anchor), **given)
    return sorted(the_ledgers().verify_file(io.BytesIO(ledger), name="a ledger", expected=expected).by_code)


def live_codes(anchor: bytes, **given) -> list[str]:
    return sorted(the_ledgers().verify_live(expected=Expected.of(anchor=("the anchor", anchor)), **given).by_code)


def signed_again(anchor: bytes, old: bytes, new: bytes, *, key: Ed25519PrivateKey | None = None) -> bytes:
    """The anchor with other contents, signed by whoever holds this key."""
    body = anchor.rpartition(b'{"type":"signature"')[0].replace(old, new)
    return anchor_file.with_signature(body, key.sign(body) if key else b"\0" * 64)


def test_an_anchor_names_every_chain_with_its_head():
    mine = a_conversation("one", "two", session_id="é")
    theirs = a_conversation("three", workspace=a_workspace("theirs"), session_id="b")
    empty = a_conversation(session_id="empty")
    AuditLog().record(Act.BACKUP)

    lines = [json.loads(line) for line in an_anchor().splitlines()]

    heads = {row.pk: bytes(row.chain_head).hex() or None for row in Conversation.objects.all()}
    assert (lines[0]["format"], lines[0]["version"]) == ("lcm-anchor", 1)
    assert [(line["workspace"], line["session_id"], line["messages"], line["chain_head"]) for line in lines[1:-2]] == [
        ("default", "empty", 0, heads[empty.conversation_id]),
        ("default", "é", 2, heads[mine.conversation_id]),
        ("theirs", "b", 1, heads[theirs.conversation_id]),
    ]
    assert lines[-2]["number"] == AuditEntry.objects.exclude(act="anchor").count() == 1
    assert service().verify().is_clean


def test_making_one_is_an_act_which_the_next_one_seals():
    a_conversation("one")
    first = an_anchor()
    connection.check_constraints()

    act = AuditEntry.objects.get(act="anchor")
    second = anchor_file.parse(an_anchor(), name="second")

    sealed = AuditLink.objects.get(number=1)
    assert act.detail["conversations"] == act.detail["messages"] == 1
    assert act.detail["sha256"] == hashlib.sha256(first).hexdigest()
    assert (second.acts.number, second.acts.chain_hash) == (1, bytes(sealed.chain_hash).hex())
    assert min(path.name for path in service().directory.iterdir()) == act.target


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")
def test_a_stranger_verifies_one_with_openssl(tmp_path):
    a_conversation("one", session_id="é")
    anchor = an_anchor()
    lines = anchor.splitlines(keepends=True)
    (tmp_path / "body").write_bytes(b"".join(lines[:-1]))
    (tmp_path / "signature").write_bytes(bytes.fromhex(json.loads(lines[-1])["signature"]))
    (tmp_path / "key.pem").write_text(service().public_key().pem)

    def verified() -> int:
        program = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in body -sigfile signature"
        return subprocess.run(program.split(), cwd=tmp_path, capture_output=True, check=False).returncode

    assert verified() == 0
    (tmp_path / "body").write_bytes(b"".join(lines[:-1]).replace(b'"messages":1', b'"messages":2'))
    assert verified() == 1


def test_a_ledger_that_has_grown_since_verifies():
    conversation_id = a_conversation("one", "two").conversation_id
    anchor = an_anchor()
    say(conversation_id, "three")
    newer = a_conversation("four").conversation_id

    expected = Expected.of(anchor=("the anchor", anchor))
    report = the_ledgers().verify_live(expected=expected)

    assert report.is_clean and codes(exported(conversation_id), anchor) == []
    assert (report.anchor.conversations, report.anchor.unnamed_conversations) == (1, 1)
    # Of this one the anchor proves nothing.
    assert codes(exported(newer), anchor) == ["not_anchored"]
    assert service().verify().unnamed_conversations == 1


def test_a_conversation_that_was_cut_renamed_dated_back_or_lost_is_refused():
    id = a_conversation("one", session_id="mine").conversation_id
    other = a_conversation("two", session_id="other").conversation_id
    shorter = exported(id)
    say(id, "three")
    anchor = an_anchor()
    assert codes(shorter, anchor) == ["anchor_mismatch"]

    breaking("UPDATE conversations SET session_id = 'new' WHERE conversation_id = %s", id)
    assert codes(exported(id), anchor) == ["not_anchored"]
    assert live_codes(anchor) == codes(exported(), anchor) == ["anchor_mismatch"]
    dated_back = "session_id = 'mine', created_at = created_at - interval '1 day'"
    breaking(f"UPDATE conversations SET {dated_back} WHERE conversation_id = %s", id)
    assert codes(exported(id), anchor) == ["anchor_mismatch"]
    assert live_codes(anchor, conversation_id=other) == []
    assert [finding.code for finding in service().verify().findings] == ["anchor_mismatch"]
    for table in ("messages", "conversations"):
        breaking(f"DELETE FROM {table} WHERE conversation_id = %s", other)
    assert service().verify().finding_count == 2


def test_an_altered_anchor_and_one_of_another_key_are_refused(tmp_path):
    conversation_id = a_conversation("one").conversation_id
    anchor, ledger = an_anchor(), exported(conversation_id)
    ours = service().public_key().public_key
    stranger = Ed25519PrivateKey.generate()
    theirs = signed_again(anchor, ours.encode(), signing.public_hex(stranger).encode(), key=stranger)

    assert codes(ledger, anchor, trusted_key=ours) == []
    assert codes(ledger, signed_again(anchor, b"", b"")) == ["anchor_signature_invalid"]
    assert codes(ledger, signed_again(anchor, b'"site":"', b'"site":"x')) == ["anchor_signature_invalid"]
    (tmp_path / "altered").write_bytes(signed_again(anchor, b"", b""))
    assert [each.code for each in service().verify(tmp_path / "altered").findings] == ["anchor_signature_invalid"]
    # Whoever may put a key into an anchor may sign it: only a key that is known from elsewhere tells.
    assert codes(ledger, theirs) == []
    assert codes(ledger, theirs, trusted_key=ours) == ["anchor_signature_invalid"]


def test_a_public_key_is_given_as_digits_or_as_a_file(tmp_path):
    key = service().public_key()
    (tmp_path / "key.pem").write_text(key.pem)
    (tmp_path / "key.hex").write_text(f"{key.public_key}\n")
    (tmp_path / "nothing").write_text("nothing")

    given = key.public_key.upper(), str(tmp_path / "key.pem"), str(tmp_path / "key.hex")

    assert {signing.read_public_key(each) for each in given} == {key.public_key}
    for wrong in (tmp_path / "nothing", tmp_path / "missing"):
        with pytest.raises(Invalid) as refusal:
            signing.read_public_key(str(wrong))
        assert refusal.value.code == "unusable_key"


def test_the_key_is_made_once_for_this_user_alone():
    keys = at_once(lambda _: service().public_key().public_key)

    file = service().key_file
    assert len(set(keys)) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir() if "anchor_key" in each.name] == [file.name]


def in_pem(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_a_key_that_the_operator_names_is_used_and_never_made(tmp_path):
    a_conversation("one")
    file = tmp_path / "given.pem"
    for content in (None, b"nothing", in_pem(X25519PrivateKey.generate())):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(Invalid) as refusal:
            service(key_file=file, may_create_key=False).make()
        assert refusal.value.code == "unusable_key"
    assert not AuditEntry.objects.exists()
    key = Ed25519PrivateKey.generate()
    file.write_bytes(in_pem(key))

    assert service(key_file=file, may_create_key=False).make().public_key == signing.public_hex(key)


def test_what_cannot_be_written_is_refused_and_no_act_says_that_it_was(tmp_path):
    (tmp_path / "taken").write_text("a file")

    with pytest.raises(Unavailable):
        service(directory=tmp_path / "taken").make()

    assert not AuditEntry.objects.exists()


def test_a_chain_that_contradicts_its_length_is_not_signed():
    a_conversation("one")
    breaking("UPDATE conversations SET next_seq = 1")

    with pytest.raises(Conflict, match="lcm check"):
        service().make()


def test_the_newest_is_found_by_its_name():
    with pytest.raises(NotFound):
        service().read()
    a_conversation("one")
    now = timezone.now()
    older, newer = (service(now=lambda moment=moment: moment).make() for moment in (now - timedelta(days=1), now))
    (service().directory / "anchor-notes.jsonl").write_text("")

    assert [each.file for each in service().list_anchors()] == [newer.file, older.file]
    assert service().read()[0] == Path(newer.file).name
    assert stat.S_IMODE(service().directory.stat().st_mode) == 0o700


def test_a_worker_makes_one_when_the_last_is_older_than_the_interval():
    policy = service().policy
    now = timezone.now()

    def sweep(**later) -> bool:
        at = now + timedelta(**later)
        return service(now=lambda: at).sweep() is not None

    assert not sweep(days=400)
    a_conversation("one")
    assert not sweep(minutes=policy.anchor_interval_minutes - 1)
    assert sweep(minutes=policy.anchor_interval_minutes + 1)
    assert not sweep(minutes=policy.anchor_interval_minutes - 1)
    assert sweep(days=-400)
    off = type(policy)(anchor_interval_minutes=0)
    assert service(policy=off, now=lambda: now + timedelta(days=400)).sweep() is None


HEX = "0" * 64
MADE = "2026-01-31T12:00:00.000000Z"
FIRST = {"type": "anchor", "format": "lcm-anchor", "version": 1, "site": "s", "made_at": MADE, "public_key": HEX}
CHAIN = {"type": "conversation", "workspace": "w", "session_id": "s", "created_at": MADE} | {
    "messages": 1,
    "chain_head": HEX,
}
ACTS = {"type": "audit", "number": 1, "chain_hash": HEX}
LAST = {"type": "signature", "signature": HEX + HEX}


def as_lines(*lines: object) -> bytes:
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [FIRST, LAST],
        [FIRST, ACTS, ACTS],
        [FIRST, CHAIN, CHAIN, ACTS, LAST],
        [{**FIRST, "version": 2}, ACTS, LAST],
        [{**FIRST, "made_at": "yesterday"}, ACTS, LAST],
        [{**FIRST, "public_key": "x"}, ACTS, LAST],
        [{**FIRST, "more": 1}, ACTS, LAST],
        [FIRST, {**CHAIN, "messages": "1"}, ACTS, LAST],
        [FIRST, {**CHAIN, "messages": True}, ACTS, LAST],
        [FIRST, {**CHAIN, "messages": -1}, ACTS, LAST],
        [FIRST, {**CHAIN, "messages": 0}, ACTS, LAST],
        [FIRST, {**CHAIN, "chain_head": None}, ACTS, LAST],
        [FIRST, {**CHAIN, "chain_head": HEX.replace("0", "X")}, ACTS, LAST],
        [FIRST, {**ACTS, "chain_hash": 1}, LAST],
        [FIRST, ACTS, {**LAST, "signature": HEX}],
        [[], ACTS, LAST],
        b"\xff\n\n\n",
        b"{\n" * 3,
        b"[" * 100_000 + b"\n\n\n",
        b'{"a": 1}\n' * 4,
    ],
    ids=range(21),
)
def test_what_is_no_anchor_is_refused_in_a_sentence(lines):
    with pytest.raises(Invalid, match="is not an anchor") as refusal:
        anchor_file.parse(as_lines(*lines) if isinstance(lines, list) else lines, name="a file")

    assert refusal.value.code == "malformed_anchor"


def test_what_is_written_is_what_is_read():
    content = as_lines(FIRST, CHAIN, ACTS, LAST)

    anchor = anchor_file.parse(content, name="a file")

    again = anchor_file.body_of(anchor.header, anchor.chains.values(), anchor.acts)
    assert anchor_file.with_signature(again, anchor.signature) == content


def test_a_history_rewritten_with_all_its_hashes_is_refused_by_an_anchor_and_by_nothing_else(conversation):
    kept = exported(conversation.id)
    anchor = an_anchor()
    head = the_ledgers().verify_file(io.BytesIO(kept), name="kept").line_hash
    assert codes(kept, anchor, line_hash=head) == []

    # Below a leaf and a summary of leaves.
    rewrite(conversation.id, seq=3, text="message 4")
    connection.check_constraints()
    ledger = exported(conversation.id)

    assert ledger.count(b'"message 4"') == 2 and ledger != kept
    # Without what was kept elsewhere nothing shows: not to the checker, and not to who verifies the ledger.
    assert checked() == {}
    assert the_ledgers().verify_live().is_clean and verified(ledger).is_clean
    assert codes(ledger, anchor) == live_codes(anchor) == ["anchor_mismatch"]
    assert codes(ledger, anchor, line_hash=head) == ["anchor_mismatch", "unexpected_head"]
    # The same to who has nothing of LCM but docs/ledger.md.
    heads = verifier.heads_in(anchor.splitlines())
    verifier.verify(io.BytesIO(ledger))
    verifier.verify(io.BytesIO(kept), heads=heads)
    with pytest.raises(AssertionError, match="another history"):
        verifier.verify(io.BytesIO(ledger), heads=heads)
    [wrong] = service().verify().findings
    assert (wrong.code, wrong.id.partition(": ")[0]) == ("anchor_mismatch", "default")


def test_an_audit_log_rewritten_with_its_chain_is_refused_by_an_anchor_and_by_nothing_else():
    with_an_act = AuditLog().record(Act.BACKUP).pk
    an_anchor()
    assert service().verify().is_clean

    connection.check_constraints()
    rewrite_act(with_an_act, actor="somebody else")

    assert AuditEntry.objects.get(pk=with_an_act).actor == "somebody else"
    assert checked() == {}
    [wrong] = service().verify().findings
    assert (wrong.code, wrong.id) == ("anchor_mismatch", "audit log")
