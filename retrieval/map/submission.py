"""Check the request for a map run; store the run with its items, all or nothing."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from conversations.content.hashing import json_hash
from conversations.content.lossless_values import is_storable, require_names
from conversations.errors import Conflict, Invalid, TooLarge
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, LargeFile
from conversations.scope import Scoped
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
# The maximum length of the prompt with the longest item in all of its places.
MOST_FILLED_CHARACTERS = 10_000_000
MOST_CONCURRENCY = 64
MOST_ATTEMPTS = 10
MOST_TIMEOUT_SECONDS = 600
MOST_BUDGET_TOKENS = 2**60
_LONGEST = {
    "prompt": MOST_PROMPT_CHARACTERS,
    **dict.fromkeys(("retain", "delegated_scope", "kept_work"), MOST_TERM_CHARACTERS),
}
_BATCH = 1000

# The specification prescribes the wording of this error.
NO_RETENTION = "Delegation without retention violates scope-reduction invariant."


def _require_possible(run: MapRun, *, items: Sequence[Any] | None, input_file_id: str | None) -> None:
    """Raise Invalid for errors that can be found without the database."""
    if run.kind == MapKind.AGENTIC:
        _require_terms(run)
    if PLACE not in run.prompt:
        raise Invalid(f"prompt must contain {PLACE}, which is replaced by the item.")
    if run.budget_tokens is not None and run.budget_tokens > MOST_BUDGET_TOKENS:
        raise Invalid(f"budget_tokens must be 1 to {MOST_BUDGET_TOKENS:,}.")
    for name, most in _LONGEST.items():
        text = getattr(run, name)
        if len(text) > most or not is_storable(text):
            raise Invalid(f"{name} must be at most {most:,} characters without NUL or lone surrogates.")
    require_names(idempotency_key=run.idempotency_key)
    if (input_file_id is None) == (items is None):
        raise Invalid("Give either input_file_id or items, one of the two.")
    if items is not None and run.conversation_id is None:
        raise Invalid("items need conversation_id: input and output are kept as files of that conversation.")


def _require_terms(run: MapRun) -> None:
    if not run.retain.strip():
        raise Invalid(NO_RETENTION, code="no_retention")
    if run.grant_id is not None and not (run.delegated_scope.strip() and run.kept_work.strip()):
        raise Invalid(
            "With a grant, state what you hand over (delegated_scope) and what you still do yourself (kept_work).",
            code="no_scope_reduction",
        )


@dataclass(frozen=True)
class MapSubmission(Scoped):
    """Stores new runs of one workspace."""

    def submit(self, run: MapRun, *, items: Sequence[Any] | None, input_file_id: str | None) -> MapRun:
        """Store a new run with all its items, or return the run of its idempotency key.

        The input is either `items` or a stored file. Raises Invalid, NotFound, TooLarge, Unavailable, and
        Conflict for a key that belongs to another run.
        """
        _require_possible(run, items=items, input_file_id=input_file_id)
        checked_schema(run.output_schema)
        if run.grant_id is not None:
            Grants.from_settings(self.scope).usable(grant_id=run.grant_id)
        conversation, file = self._places(run.conversation_id, input_file_id)
        texts = self._texts(items, file)
        if len(run.prompt) + run.prompt.count(PLACE) * max(map(len, texts)) > MOST_FILLED_CHARACTERS:
            raise TooLarge(
                f"The prompt with its longest item is too large; write {PLACE} fewer times, or split the item."
            )
        if run.parent_run_id is not None:
            self.scope.find(MapRun.objects.all(), "map run", run.parent_run_id, run_id=run.parent_run_id)
        run.run_id = f"map_{secrets.token_hex(8)}"
        run.workspace_id = conversation.workspace_id
        run.total = len(texts)
        run.prompt_hash = hashlib.sha256(run.prompt.encode()).digest()
        run.schema_hash = json_hash(run.output_schema)
        run.input_hash = hash_of_items(texts)
        if (same := _same_run(run)) is not None:
            return same
        # The bytes are stored first, because the row of a file must not name missing bytes.
        kept = file or self._kept(conversation, run.pk, texts)
        with transaction.atomic():
            # This lock serializes the requests of one conversation, so that a repeated request finds the first run.
            Conversation.objects.select_for_update(no_key=True).get(pk=conversation.pk)
            if (same := _same_run(run)) is not None:
                return same
            # The lock of the file: an erasure waits, and then finds the run.
            held = LargeFile.objects.filter(erased_by=None).select_for_update(no_key=True)
            found = self.scope.find(held, "file", kept.pk, file_id=kept.pk) if file else None
            run.input_file = found or LargeFileService.from_settings(self.scope).describe(kept)
            run.save(force_insert=True)
            for first in range(0, len(texts), _BATCH):
                MapItem.objects.bulk_create(_items(run, texts[first : first + _BATCH], first))
            self._record(run)
            if run.kind == MapKind.LLM:
                wake_workers()
        return run

    def _places(self, conversation_id: int | None, input_file_id: str | None) -> tuple[Conversation, LargeFile | None]:
        """The conversation that owns the run's files, and the input file, if given."""
        conversation = None if conversation_id is None else self.scope.conversation(conversation_id)
        if input_file_id is None:
            assert conversation is not None, "items have a conversation"
            return conversation, None
        file = self.scope.file(input_file_id)
        home = self.scope.conversation(file.conversation_id)
        if conversation is not None and conversation.workspace_id != home.workspace_id:
            raise Invalid("The input file belongs to another workspace than the conversation.")
        return conversation or home, file

    def _texts(self, items: Sequence[Any] | None, file: LargeFile | None) -> list[str]:
        if file is None:
            return items_of_values(items or ())
        if (file.byte_size or 0) > MOST_INPUT_BYTES:
            raise TooLarge(f"An input has at most {MOST_INPUT_BYTES:,} bytes; give several runs a part each.")
        content = LargeFileService.from_settings(self.scope).read(file_id=file.file_id)
        return items_of_file(content, file_name=file.file_name)

    def _kept(self, conversation: Conversation, run_id: str, texts: Sequence[str]) -> LargeFile:
        lines = (f"{text}\n".encode() for text in texts)
        return LargeFileService.from_settings(self.scope).keep(
            conversation, lines, file_name=f"{run_id}-input.jsonl", mime_type=MIME_TYPE
        )

    def _record(self, run: MapRun) -> None:
        """Record the submission event and, for an agentic run, hashes of its terms."""
        hashes = {"prompt_hash": bytes(run.prompt_hash).hex(), "schema_hash": bytes(run.schema_hash).hex()}
        values: dict[str, Any] = {"actor": self.scope.actor, "input_hash": bytes(run.input_hash)}
        details = {"kind": run.kind, "items": run.total, "model": run.model, **hashes}
        record_event(run, MapEventKind.SUBMITTED, details=details, **values)
        if run.kind == MapKind.AGENTIC:
            terms: dict[str, Any] = {
                f"{name}_hash": hashlib.sha256(text.encode()).hexdigest()
                for name in ("retain", "delegated_scope", "kept_work")
                if (text := getattr(run, name))
            }
            terms |= {"grant_id": run.grant_id, "read_only": run.read_only}
            record_event(run, MapEventKind.DELEGATED, details=terms, **values)


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
