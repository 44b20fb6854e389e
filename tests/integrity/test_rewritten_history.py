"""A history that was rewritten with all its hashes contradicts nothing but what was kept elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from conversations.audit import Act, AuditLog
from conversations.models import AuditEntry
from integrity.anchors.anchoring import AnchorService
from integrity.anchors.expectations import Expected
from integrity.checker import IntegrityChecker
from tests.conversations.ledger import verifier
from tests.conversations.ledger.ledgers import exported, the_ledgers
from tests.conversations.test_audit_chain import as_at_a_commit
from tests.integrity.breaking import found
from tests.integrity.rewriting import rewrite, rewrite_act


def an_anchor() -> tuple[str, bytes]:
    as_at_a_commit()
    report = AnchorService.from_settings().make()
    return Path(report.file).name, Path(report.file).read_bytes()


def verdict_on(ledger: bytes, expected: Expected) -> dict[str, int]:
    return dict(the_ledgers().verify_file(io.BytesIO(ledger), name="a ledger", expected=expected).by_code)


def verdict_on_what_is_stored(expected: Expected) -> dict[str, int]:
    return dict(the_ledgers().verify_live(expected=expected).by_code)


@pytest.mark.parametrize("seq", [3, 30, 36])
def test_a_history_rewritten_with_all_its_hashes_is_refused_by_an_anchor_and_by_nothing_else(conversation, seq):
    kept = exported(conversation.id)
    anchor = an_anchor()
    anchored = Expected.of(anchor=anchor)
    hashed = Expected.of(line_hash=the_ledgers().verify_file(io.BytesIO(kept), name="kept").line_hash)
    assert verdict_on(kept, anchored) == verdict_on(kept, hashed) == {}

    rewrite(conversation.id, seq=seq, text=f"message {seq + 1}")
    as_at_a_commit()
    ledger = exported(conversation.id)

    assert f'"message {seq + 1}"'.encode() in ledger and ledger != kept
    # Without what was kept elsewhere nothing shows: not to the checker, and not to who verifies the ledger.
    assert found(IntegrityChecker.from_settings().run()) == {}
    assert verdict_on(ledger, Expected()) == verdict_on_what_is_stored(Expected()) == {}
    assert verdict_on(ledger, anchored) == verdict_on_what_is_stored(anchored) == {"anchor_mismatch": 1}
    assert verdict_on(ledger, hashed) == {"unexpected_head": 1}
    assert verdict_on(kept, anchored) == {}
    # The same to who has nothing of LCM but docs/ledger.md.
    heads = verifier.heads_in(anchor[1].splitlines())
    verifier.verify(io.BytesIO(ledger))
    verifier.verify(io.BytesIO(kept), heads=heads)
    with pytest.raises(AssertionError, match="another history"):
        verifier.verify(io.BytesIO(ledger), heads=heads)
    (wrong,) = AnchorService.from_settings().verify().findings
    assert (wrong.code, wrong.id.partition(": ")[0]) == ("anchor_mismatch", "default")


def test_an_audit_log_rewritten_with_its_chain_is_refused_by_an_anchor_and_by_nothing_else(conversation):
    with_an_act = AuditLog().record(Act.BACKUP).pk
    an_anchor()
    assert AnchorService.from_settings().verify().is_clean

    as_at_a_commit()
    rewrite_act(with_an_act, actor="somebody else")

    assert AuditEntry.objects.get(pk=with_an_act).actor == "somebody else"
    assert found(IntegrityChecker.from_settings().run()) == {}
    (wrong,) = AnchorService.from_settings().verify().findings
    assert (wrong.code, wrong.id) == ("anchor_mismatch", "audit log")
