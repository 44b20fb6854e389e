"""Make anchors, store them as files, and compare the database with them."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Self

from django.conf import settings
from django.db import transaction
from django.db.models import Min
from django.db.models.functions import Collate
from django.utils import timezone
from pydantic import ValidationError

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, NotFound, Unavailable
from conversations.ledger.lines import as_text
from conversations.models import AuditEntry, AuditHead, Conversation
from conversations.scope import EVERYTHING, Scope
from conversations.sql import load, rows, snapshot
from integrity.anchors import anchor_file, signing
from integrity.anchors.anchor_file import AnchoredActs, AnchoredChain, AnchorHeader
from integrity.anchors.expectations import MISMATCH, MISSING, NOT_SIGNED, SIGNATURE_INVALID
from integrity.anchors.types import AnchorFile, AnchorFinding, AnchorReport, AnchorVerdict, PublicKey
from integrity.policy import IntegrityPolicy

_NAME = "anchor-%Y%m%dT%H%M%S.%fZ.jsonl"
# The advisory lock under which one worker checks whether an anchor is due.
_LOCK = 0x4C434D_616E63
PORTION = 1_000
MOST_LISTED = 100
_STORED_CHAINS = load("integrity/reports.sql")["stored_chains"]


@dataclass(frozen=True)
class AnchorService:
    """Signs the last hashes of all chains of the site, on a command or on a schedule."""

    directory: Path
    key_file: Path
    # Whether to create a missing key file. A file whose path the site administrator has set must exist.
    may_create_key: bool
    policy: IntegrityPolicy
    scope: Scope = EVERYTHING
    now: Callable[[], datetime] = timezone.now

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(
            directory=settings.ANCHOR_DIR,
            key_file=settings.ANCHOR_KEY_FILE,
            may_create_key=settings.ANCHOR_KEY_IS_OURS,
            policy=IntegrityPolicy.from_settings(),
            scope=scope,
        )

    def make(self) -> AnchorReport:
        """Sign the last hashes of all chains, store the file, and write an audit entry.

        Raises Invalid for an unusable key, Conflict for a damaged chain, and Unavailable if the file cannot be written.
        """
        key = signing.load_private_key(self.key_file, may_create=self.may_create_key)
        made_at, public_key = self.now(), signing.public_hex(key)
        try:
            with snapshot():
                chains, acts = list(_read_chains()), _read_acts()
        except ValidationError as wrong:
            raise Conflict("A chain contradicts its length, so nothing was signed: run `lcm check`.") from wrong
        header = AnchorHeader(site=platform.node(), made_at=as_text(made_at), public_key=public_key)
        body = anchor_file.body_of(header, chains, acts)
        content = anchor_file.with_signature(body, key.sign(body))
        file = self.directory / made_at.astimezone(UTC).strftime(_NAME)
        report = AnchorReport(
            file=str(file),
            made_at=as_text(made_at),
            conversations=len(chains),
            messages=sum(chain.messages for chain in chains),
            acts=acts.number,
            acts_hash=acts.chain_hash,
            public_key=public_key,
            sha256=hashlib.sha256(content).hexdigest(),
        )
        named = ("conversations", "messages", "acts", "public_key", "sha256")
        with transaction.atomic():
            detail = {name: getattr(report, name) for name in named}
            AuditLog(self.scope).record(Act.ANCHOR, target=file.name, detail=detail)
            # Before the commit: an audit entry must not name a missing file.
            self._store(file, content)
        return report

    def sweep(self) -> AnchorReport | None:
        """Make an anchor if one is due; the maintenance worker calls this.

        It is due if the newest anchor is older than the interval; without anchors, if the oldest conversation is.
        """
        if not self.policy.anchor_interval_minutes:
            return None
        with transaction.atomic():
            if rows("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK]) != [(True,)] or not self._is_due():
                return None
            return self.make()

    def list_anchors(self) -> list[AnchorFile]:
        """List the files in the anchor directory, newest first."""
        return [AnchorFile(str(path), made_at, path.stat().st_size) for made_at, path in self._files()]

    def public_key(self) -> PublicKey:
        """Return the public key of this site's anchors, creating the key if needed."""
        key = signing.load_private_key(self.key_file, may_create=self.may_create_key)
        return PublicKey(public_key=signing.public_hex(key), pem=signing.public_pem(key), key_file=str(self.key_file))

    def read(self, path: Path | None = None) -> tuple[str, bytes]:
        """Return name and content of the anchor at `path`, by default of the newest.

        Raises NotFound if there is none.
        """
        if path is None:
            files = self._files()
            if not files:
                raise NotFound(f"There is no anchor in {self.directory} yet; `lcm anchor` makes one.")
            _, path = files[0]
        try:
            return path.name, path.read_bytes()
        except (OSError, ValueError) as refusal:
            why = getattr(refusal, "strerror", None) or refusal
            raise Invalid(f"{path} cannot be read: {why}.", code="unreadable_file") from refusal

    def verify(self, path: Path | None = None, *, trusted_key: str | None = None) -> AnchorVerdict:
        """Compare every chain in the database with an anchor, by default the newest.

        This compares stored hashes; `lcm check` and `lcm ledger verify --live` compare texts with their hashes. Raises
        NotFound, and Invalid for a malformed file.
        """
        name, content = self.read(path)
        anchor = anchor_file.parse(content, name=name)
        is_signed = signing.is_signed_by(anchor, trusted_key)
        findings = [] if is_signed else [AnchorFinding(SIGNATURE_INVALID, "signature", NOT_SIGNED)]
        with snapshot():
            findings += [*_differing_acts(anchor.acts), *_differing_chains(anchor.chains.values())]
            stored = Conversation.objects.count()
        named = len(anchor.chains) - sum(finding.detail == MISSING for finding in findings)
        return AnchorVerdict(
            source=name,
            site=anchor.header.site,
            made_at=anchor.header.made_at,
            public_key=anchor.header.public_key,
            key_is_trusted=trusted_key is not None,
            conversations=len(anchor.chains),
            messages=sum(chain.messages for chain in anchor.chains.values()),
            acts=anchor.acts.number,
            unnamed_conversations=stored - named,
            is_clean=not findings,
            finding_count=len(findings),
            findings=tuple(findings[:MOST_LISTED]),
        )

    def _files(self) -> list[tuple[datetime, Path]]:
        """Return the files with a time in their name, newest first."""
        found = []
        for path in self.directory.glob("anchor-*.jsonl"):
            with suppress(ValueError):
                found.append((datetime.strptime(path.name, _NAME).replace(tzinfo=UTC), path))
        return sorted(found, reverse=True)

    def _store(self, file: Path, content: bytes) -> None:
        try:
            # Private, because an anchor names every workspace and session.
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Without a rename, which write-once storage may refuse. An incomplete file is invalid: it has no signature.
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as refusal:
            raise Unavailable(f"The anchor cannot be written to {file}: {refusal.strerror}.") from refusal

    def _is_due(self) -> bool:
        last = AuditEntry.objects.filter(act=Act.ANCHOR).order_by("-audit_id").values_list("recorded_at", flat=True)
        since = last.first() or Conversation.objects.aggregate(oldest=Min("created_at"))["oldest"]
        interval = timedelta(minutes=self.policy.anchor_interval_minutes)
        # A time much later than now is from before the clock was set back.
        return since is not None and not self.now() - interval < since < self.now() + interval


def _read_chains() -> Iterator[AnchoredChain]:
    """Yield the chains in an order that is the same for every database collation."""
    ordered = Conversation.objects.order_by(Collate("workspace__name", "C"), Collate("session_id", "C"))
    columns = ordered.values_list("workspace__name", "session_id", "created_at", "next_seq", "chain_head")
    for workspace, session_id, created_at, next_seq, chain_head in columns.iterator(chunk_size=PORTION):
        yield AnchoredChain(
            workspace=workspace,
            session_id=session_id,
            created_at=as_text(created_at),
            messages=next_seq - 1,
            chain_head=bytes(chain_head).hex() or None,
        )


def _read_acts() -> AnchoredActs:
    head = AuditHead.objects.first()
    if head is None or not head.number:
        return AnchoredActs(number=0, chain_hash=None)
    return AnchoredActs(number=head.number, chain_hash=bytes(head.chain_hash).hex())


def _differing_acts(acts: AnchoredActs) -> Iterator[AnchorFinding]:
    stored = rows("SELECT encode(chain_hash, 'hex') FROM audit_chain WHERE number = %s", [acts.number])
    if acts.number and stored != [(acts.chain_hash,)]:
        wrong = "differs from the anchored chain_hash" if stored else MISSING
        yield AnchorFinding(MISMATCH, "audit log", f"act number {acts.number} {wrong}")


def _differing_chains(anchored: Iterable[AnchoredChain]) -> Iterator[AnchorFinding]:
    """Compare the stored hash at the last anchored message of each chain."""
    rest = iter(anchored)
    while chains := list(islice(rest, PORTION)):
        columns = [[getattr(chain, name) for chain in chains] for name in ("workspace", "session_id", "messages")]
        for chain, stored in zip(chains, rows(_STORED_CHAINS, columns), strict=True):
            conversation_id, created_at, messages, chain_hash = stored
            wrong = MISSING
            if conversation_id is not None:
                wrong = chain.difference(created_at=as_text(created_at), messages=messages, chain_hash=chain_hash)
            if wrong:
                yield AnchorFinding(MISMATCH, f"{chain.workspace}: {chain.session_id}", wrong)
