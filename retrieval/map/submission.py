"""Check the request for a map run; store the run with its items, all or nothing."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from conversations.content.hashing import json_hash
from conversations.content.lossless_values import is_storable, require_names
from conversations.errors import Conflict, Invalid, TooLarge
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, LargeFile
from conversations.scope import EVERYTHING, Scope
from retrieval.delegation.grants import Grants
from retrieval.map.event_log import record_event
from retrieval.map.input_items import MOST_INPUT_BYTES, hash_of_items, items_of_file, items_of_values
from retrieval.map.item_prompt import PLACE
from retrieval.map.item_queue import wake_workers
from retrieval.map.models import MapItem, MapRun
from retrieval.map.output_schema import checked_schema
from retrieval.map.run_output import MIME_TYPE
from retrieval.map.types import MapEventKind, MapKind

MOST_PROMPT_CHARACTERS = 100_000
MOST_TERM_CHARACTERS = 10_000
MOST_CONCURRENCY = 64
MOST_ATTEMPTS = 10
MOST_TIMEOUT_SECONDS = 600
_BATCH = 1000

# The specification prescribes the wording of this error.
NO_RETENTION = "Delegation without retention violates scope-reduction invariant."


@dataclass(frozen=True, kw_only=True)
class MapRequest:
    """The parameters of a requested map run."""

    kind: MapKind
    prompt: str
    output_schema: Mapping[str, Any]
    input_file_id: str | None = None
    items: Sequence[Any] | None = None
    conversation_id: int | None = None
    model: str = ""
    concurrency: int = 8
    max_attempts: int = 3
    temperature: float | None = None
    timeout_s: int = 60
    budget_tokens: int | None = None
    retain: str = ""
    delegated_scope: str = ""
    kept_work: str = ""
    grant_id: str | None = None
    read_only: bool = True
    parent_run_id: str | None = None
    idempotency_key: str | None = None

    def require_possible(self) -> None:
        """Raise Invalid for errors that can be found without the database."""
        if self.kind is MapKind.AGENTIC:
            self._require_terms()
        if PLACE not in self.prompt:
            raise Invalid(f"prompt must contain {PLACE}, which is replaced by the item.")
        bounds = {
            "concurrency": (self.concurrency, MOST_CONCURRENCY),
            "max_attempts": (self.max_attempts, MOST_ATTEMPTS),
            "timeout_s": (self.timeout_s, MOST_TIMEOUT_SECONDS),
            "budget_tokens": (1 if self.budget_tokens is None else self.budget_tokens, 2**60),
        }
        for name, (value, most) in bounds.items():
            if not 1 <= value <= most:
                raise Invalid(f"{name} must be 1 to {most:,}.")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise Invalid("temperature must be 0 to 2.")
        texts = {
            "prompt": (self.prompt, MOST_PROMPT_CHARACTERS),
            "retain": (self.retain, MOST_TERM_CHARACTERS),
            "delegated_scope": (self.delegated_scope, MOST_TERM_CHARACTERS),
            "kept_work": (self.kept_work, MOST_TERM_CHARACTERS),
        }
        for name, (text, most) in texts.items():
            if len(text) > most or not is_storable(text):
                raise Invalid(f"{name} must be at most {most:,} characters without NUL or lone surrogates.")
        require_names(idempotency_key=self.idempotency_key)
        if (self.input_file_id is None) == (self.items is None):
            raise Invalid("Give either input_file_id or items, one of the two.")
        if self.items is not None and self.conversation_id is None:
            raise Invalid("items need conversation_id: input and output are kept as files of that conversation.")

    def _require_terms(self) -> None:
        if not self.retain.strip():
            raise Invalid(NO_RETENTION, code="no_retention")
        if self.grant_id is not None and not (self.delegated_scope.strip() and self.kept_work.strip()):
            raise Invalid(
                "With a grant, state what you hand over (delegated_scope) and what you still do yourself (kept_work).",
                code="no_scope_reduction",
            )


@dataclass(frozen=True)
class MapSubmission:
    """Stores requests as runs of one workspace."""

    scope: Scope = EVERYTHING

    def submit(self, request: MapRequest) -> MapRun:
        """Store a run with all of its items, or return the run of the idempotency key.

        Raises Invalid, NotFound, TooLarge, Unavailable, and Conflict for a key that belongs to another run.
        """
        request.require_possible()
        checked_schema(request.output_schema)
        if request.grant_id is not None:
            Grants.from_settings(self.scope).usable(grant_id=request.grant_id)
        conversation, file = self._places(request)
        texts = self._texts(request, file)
        workspace_id = conversation.workspace_id
        if request.parent_run_id is not None:
            self.scope.find(MapRun.objects.all(), "map run", request.parent_run_id, run_id=request.parent_run_id)
        run = _row(request, texts, workspace_id)
        if (same := _same_run(run)) is not None:
            return same
        # The bytes are stored first, because the row of a file must not name missing bytes.
        kept = file or self._kept(conversation, run.pk, texts)
        with transaction.atomic():
            # This lock serializes the requests of one conversation, so that a repeated request finds the first run.
            Conversation.objects.select_for_update(no_key=True).get(pk=conversation.pk)
            if (same := _same_run(run)) is not None:
                return same
            run.input_file = kept if file else LargeFileService.from_settings(self.scope).describe(kept)
            run.save(force_insert=True)
            for first in range(0, len(texts), _BATCH):
                MapItem.objects.bulk_create(_items(run, texts[first : first + _BATCH], first))
            self._record(run, request)
            if request.kind is MapKind.LLM:
                wake_workers()
        return run

    def _places(self, request: MapRequest) -> tuple[Conversation, LargeFile | None]:
        """The conversation that owns the run's files, and the input file, if given."""
        conversation = None if request.conversation_id is None else self.scope.conversation(request.conversation_id)
        if request.input_file_id is None:
            assert conversation is not None, "items have a conversation"
            return conversation, None
        file = self.scope.file(request.input_file_id)
        home = self.scope.conversation(file.conversation_id)
        if conversation is not None and conversation.workspace_id != home.workspace_id:
            raise Invalid("The input file belongs to another workspace than the conversation.")
        return conversation or home, file

    def _texts(self, request: MapRequest, file: LargeFile | None) -> list[str]:
        if file is None:
            return items_of_values(request.items or ())
        if (file.byte_size or 0) > MOST_INPUT_BYTES:
            raise TooLarge(f"An input has at most {MOST_INPUT_BYTES:,} bytes; give several runs a part each.")
        content = LargeFileService.from_settings(self.scope).read(file_id=file.file_id)
        return items_of_file(content, file_name=file.file_name)

    def _kept(self, conversation: Conversation, run_id: str, texts: Sequence[str]) -> LargeFile:
        lines = (f"{text}\n".encode() for text in texts)
        return LargeFileService.from_settings(self.scope).keep(
            conversation, lines, file_name=f"{run_id}-input.jsonl", mime_type=MIME_TYPE
        )

    def _record(self, run: MapRun, request: MapRequest) -> None:
        """Record the submission event and, for an agentic run, hashes of its terms."""
        hashes = {"prompt_hash": bytes(run.prompt_hash).hex(), "schema_hash": bytes(run.schema_hash).hex()}
        values: dict[str, Any] = {
            "run_id": run.pk,
            "workspace_id": run.workspace_id,
            "actor": self.scope.actor,
            "input_hash": bytes(run.input_hash),
        }
        details = {"kind": run.kind, "items": run.total, "model": run.model, **hashes}
        record_event(event=MapEventKind.SUBMITTED, details=details, **values)
        if request.kind is MapKind.AGENTIC:
            terms: dict[str, Any] = {
                f"{name}_hash": hashlib.sha256(text.encode()).hexdigest()
                for name in ("retain", "delegated_scope", "kept_work")
                if (text := getattr(run, name))
            }
            terms |= {"grant_id": run.grant_id, "read_only": run.read_only}
            record_event(event=MapEventKind.DELEGATED, details=terms, **values)


def _row(request: MapRequest, texts: Sequence[str], workspace_id: int) -> MapRun:
    return MapRun(
        run_id=f"map_{secrets.token_hex(8)}",
        workspace_id=workspace_id,
        conversation_id=request.conversation_id,
        kind=request.kind,
        prompt=request.prompt,
        output_schema=dict(request.output_schema),
        model=request.model,
        concurrency=request.concurrency,
        max_attempts=request.max_attempts,
        temperature=request.temperature,
        timeout_s=request.timeout_s,
        budget_tokens=request.budget_tokens,
        retain=request.retain,
        delegated_scope=request.delegated_scope,
        kept_work=request.kept_work,
        grant_id=request.grant_id,
        read_only=request.read_only,
        parent_run_id=request.parent_run_id,
        idempotency_key=request.idempotency_key,
        total=len(texts),
        prompt_hash=hashlib.sha256(request.prompt.encode()).digest(),
        schema_hash=json_hash(request.output_schema),
        input_hash=hash_of_items(texts),
    )


def _items(run: MapRun, texts: Sequence[str], before: int) -> list[MapItem]:
    return [
        MapItem(run=run, position=before + place, input=text, input_hash=hashlib.sha256(text.encode()).digest())
        for place, text in enumerate(texts, start=1)
    ]


_COMPARED = (
    "kind", "conversation_id", "prompt_hash", "schema_hash", "input_hash", "model", "max_attempts", "temperature",
    "timeout_s", "budget_tokens", "concurrency", "retain", "delegated_scope", "kept_work", "grant_id", "read_only",
    "parent_run_id",
)  # fmt: skip


def _same_run(run: MapRun) -> MapRun | None:
    """Find the run with the same idempotency key; raises Conflict if it differs."""
    if run.idempotency_key is None:
        return None
    found = MapRun.objects.filter(workspace_id=run.workspace_id, idempotency_key=run.idempotency_key).first()
    if found is None:
        return None
    for name in _COMPARED:
        there, here = getattr(found, name), getattr(run, name)
        if (bytes(there) if isinstance(there, memoryview) else there) != here:
            raise Conflict(
                f"The idempotency key {run.idempotency_key!r} belongs to the run {found.pk}, whose {name} differs; "
                "nothing was stored. Use a new key for a new run.",
                run_id=found.pk,
            )
    return found
