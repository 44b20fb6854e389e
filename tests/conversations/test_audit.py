"""Who did what is written down with the deed and chained: gapless, in the order of commits, in nobody's way."""

from __future__ import annotations

import hashlib
import json
import threading
from datetime import UTC
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from conversations.audit import Act, AuditLog
from conversations.models import AuditEntry, AuditHead, AuditLink, Message
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from lcmsite.access import keys
from lcmsite.connections import closing_connections
from tests.conversations.appending import at_once
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import breaking, found
from tests.integrity.erasing import erased
from tests.statements import execute

CODE = "acts_are_chained"


def some_acts(count: int) -> list[int]:
    log = AuditLog(Scope(a_workspace().pk, actor="Ann"))
    ids = [log.record(Act.BACKUP, target=f"é {n}", detail={"b": n, "aa": [None, '"\n']}).pk for n in range(count)]
    # As at a commit: the acts are chained.
    connection.check_constraints()
    return ids


def check() -> dict[str, list[str]]:
    return found(IntegrityChecker.from_settings().run())


def text_of(entry: AuditEntry) -> str:
    """What a stranger writes, following docs/ledger.md."""
    transaction_id = AuditEntry.objects.filter(pk=entry.pk).extra(select={"xid": "transaction_id::text"})[0].xid
    when = entry.recorded_at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    detail = {name: entry.detail[name] for name in sorted(entry.detail, key=lambda name: (len(name.encode()), name))}
    columns = [entry.pk, when, entry.workspace_id, entry.conversation_id, entry.actor, entry.act, entry.target, detail]
    return json.dumps([*columns, str(transaction_id)], ensure_ascii=False, separators=(", ", ": "))


@pytest.mark.django_db
def test_a_stranger_computes_the_chain_again_from_the_rows():
    some_acts(3)
    execute("SET LOCAL TIME ZONE 'Asia/Tokyo'")
    some_acts(2)
    execute("SET LOCAL TIME ZONE 'UTC'")

    computed, previous = [], b""
    for link in AuditLink.objects.order_by("number").select_related("entry"):
        previous = hashlib.sha256(previous + text_of(link.entry).encode()).digest()
        computed.append((link.number, previous))

    stored = [(link.number, bytes(link.chain_hash)) for link in AuditLink.objects.order_by("number")]
    assert stored == computed
    assert [number for number, _ in stored] == [1, 2, 3, 4, 5]
    head = AuditHead.objects.get()
    assert (head.number, bytes(head.chain_hash)) == stored[-1]
    assert check() == {}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE audit_log SET actor = 'somebody else' WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET act = 'restore' WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET target = 'x' WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET detail = '{}' WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET recorded_at = recorded_at + interval '1 us' WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET recorded_at = 'infinity' WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET workspace_id = NULL WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET conversation_id = 77 WHERE audit_id = %s", "middle"),
        ("UPDATE audit_log SET transaction_id = '5' WHERE audit_id = %s", "middle"),
        ("DELETE FROM audit_log WHERE audit_id = %s", "middle"),
        ("DELETE FROM audit_chain WHERE audit_id = %s", "middle"),
        ("UPDATE audit_chain SET number = number + 100 WHERE audit_id = %s", "middle"),
        ("UPDATE audit_chain SET chain_hash = 'x' WHERE audit_id = %s", "middle"),
        ("UPDATE audit_head SET number = number + 0 * %s, chain_hash = 'x'", "audit_head"),
        ("UPDATE audit_head SET number = number - 1 + 0 * %s", "audit_head"),
        ("DELETE FROM audit_head WHERE %s > 0", "audit_head"),
    ],
)
def test_whatever_is_altered_in_the_log_or_its_chain_is_found(statement, named):
    middle = some_acts(5)[2]

    breaking(statement, middle)

    assert {"middle": f"act_{middle}"}.get(named, named) in check()[CODE]


@pytest.mark.django_db
def test_an_act_that_was_put_in_past_the_triggers_is_found():
    some_acts(2)

    breaking("INSERT INTO audit_log (actor, act, transaction_id) VALUES ('Ann', 'erase', '5')")

    assert check() == {CODE: [f"act_{AuditEntry.objects.latest('audit_id').pk}"]}


@pytest.mark.django_db
def test_a_cut_end_is_found():
    last = some_acts(5)[-1]

    breaking("DELETE FROM audit_chain WHERE audit_id = %s", last)
    breaking("DELETE FROM audit_log WHERE audit_id = %s", last)

    assert check() == {CODE: ["audit_head"]}


@pytest.mark.django_db
def test_a_check_of_one_workspace_looks_at_the_whole_chain():
    altered = some_acts(3)[1]
    breaking("UPDATE audit_log SET target = 'x' WHERE audit_id = %s", altered)

    report = IntegrityChecker.from_settings(Scope(a_workspace("elsewhere").pk)).run()

    assert found(report) == {CODE: [f"act_{altered}"]}


def test_acts_of_open_transactions_are_no_finding_and_hold_nobody_up(committed_db):
    a_workspace()
    written, may_commit = threading.Event(), threading.Event()

    def holds_its_act_back() -> None:
        with transaction.atomic():
            AuditLog(Scope(actor="slow")).record(Act.BACKUP)
            written.set()
            assert may_commit.wait(30)

    slow = threading.Thread(target=closing_connections, args=(holds_its_act_back,))
    slow.start()
    assert written.wait(30)
    with transaction.atomic():
        AuditLog(Scope(actor="quick")).record(Act.BACKUP)
        # Its own act is not chained yet, either.
        inside = check()
    beside = check()
    may_commit.set()
    slow.join(30)

    assert (inside, beside, check()) == ({}, {}, {})
    assert list(AuditLink.objects.order_by("number").values_list("entry__actor", flat=True)) == ["quick", "slow"]


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(25, marks=[pytest.mark.thorough, pytest.mark.timeout(600)])], ids=["short", "long"]
)
def test_administrators_at_work_at_once_make_one_chain_without_gaps(committed_db, rounds):
    scope = Scope(a_workspace().pk, actor="Ann")
    ids = [a_conversation(*(f"message {n}" for n in range(30))).conversation_id for _ in range(3)]

    def moves(conversation_id: int) -> None:
        for _ in range(rounds):
            Retention.from_settings(scope).archive(conversation_id=conversation_id)
            Retention.from_settings(scope).thaw(conversation_id=conversation_id)

    def erases(conversation_id: int) -> None:
        for seq in range(1, rounds + 1):
            erased(Erasures.from_settings(scope), conversation_id, from_seq=seq, to_seq=seq)

    def issues() -> None:
        for n in range(rounds):
            issued = keys.issue(workspace_id=scope.workspace_id, name=f"key {n}")
            keys.revoke(scope, key=str(issued.record.api_key_id))

    def checks() -> None:
        for _ in range(rounds):
            assert check() == {}

    works = [lambda: moves(ids[0]), lambda: moves(ids[1]), lambda: erases(ids[2]), issues, issues, checks]
    at_once(lambda worker: works[worker](), workers=len(works))

    acts = AuditEntry.objects.count()
    assert acts >= 8 * rounds
    assert list(AuditLink.objects.order_by("number").values_list("number", flat=True)) == list(range(1, acts + 1))
    assert check() == {}


@pytest.mark.django_db
def test_acts_come_newest_first_a_page_at_a_time_and_by_what_they_were_done_to():
    log = AuditLog(Scope(a_workspace().pk))
    held = log.record(Act.QUARANTINE, target="msg_1").pk
    other = log.record(Act.QUARANTINE, target="msg_11").pk
    released = log.record(Act.RELEASE, target="msg_1").pk

    def ids(**wanted: Any) -> list[int]:
        return [entry.audit_id for entry in log.list_acts(**wanted)]

    assert ids() == [released, other, held]
    assert (ids(limit=2), ids(limit=2, before_id=other)) == ([released, other], [held])
    assert ids(target="msg_1") == [released, held]
    assert ids(target="msg_1", act=Act.QUARANTINE) == ids(target="msg_1", before_id=released) == [held]
    assert ids(target="msg_\x00") == ids(act=Act.THAW) == []
    # A session's name may have characters that no line of text shows.
    imported = log.record(Act.IMPORT_LEDGER, target="港\u3000一\n").pk
    assert ids(target="港\u3000一\n") == [imported]


def test_an_act_of_an_earlier_transaction_lets_no_text_be_removed(committed_db):
    conversation_id = a_conversation("one").conversation_id
    with transaction.atomic():
        AuditLog(Scope(actor="Ann")).record(Act.ERASE, conversation_id=conversation_id)

    with pytest.raises(IntegrityError), transaction.atomic():
        Message.objects.filter(conversation_id=conversation_id).update(content="")


def test_a_deed_that_fails_leaves_no_act(committed_db):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        AuditLog().record(Act.BACKUP)
        _ = 1 / 0

    with pytest.raises(RuntimeError, match="in the transaction"):
        AuditLog().record(Act.BACKUP)

    assert not AuditEntry.objects.exists()
