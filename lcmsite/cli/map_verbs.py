"""`lcm map`: submit runs from files, wait for them, export and verify records."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from conversations.errors import Invalid
from conversations.files.large_files import LargeFileService
from conversations.types import LargeFileRecord
from lcmsite.catalogue import json_text
from lcmsite.catalogue.operations import OPERATIONS
from lcmsite.cli.catalogue_verbs import JSON_HELP, read_argument
from lcmsite.cli.cli_session import Session
from lcmsite.cli.verbs import OUTPUT, STDIO, argument, opened, verb
from lcmsite.types import KeyScope
from retrieval.map.event_log import MapRecord, verify_events
from retrieval.map.item_queue import OPEN_STATES
from retrieval.map.map_operator import MapOperator
from retrieval.map.output_schema import checked_schema
from retrieval.map.submission import NO_RETENTION
from retrieval.map.types import MapKind, MapRunRecord, MapState

# The interval at which --wait reads the run's state.
SECONDS_BETWEEN_READS = 1.0

_COMMON = (
    argument("prompt", metavar="PROMPT", help="The instructions for each item; {{item}} becomes the item's JSON."),
    argument("--schema", required=True, metavar="JSON", help=f"The JSON Schema of each output ({JSON_HELP})."),
    argument(
        "--input",
        default=STDIO,
        metavar="FILE",
        help="The items, as a JSON array or JSON Lines: a file, or - for standard input (the default).",
    ),
    argument("--file-id", metavar="ID", help="A stored file with the items, instead of --input."),
    argument("--in", dest="conversation", metavar="CONVERSATION", help="The conversation that gets the files."),
    argument("--concurrency", metavar="N", help="Maximum number of items processed at once."),
    argument("--max-attempts", metavar="N", help="The number of attempts after which an item fails."),
    argument("--timeout-s", metavar="N", help="Seconds to wait for the model's answer."),
    argument("--idempotency-key", metavar="TEXT", help="The same key with the same params returns the same run."),
    argument("--parent-run-id", metavar="ID", help="The map run that this run is a part of."),
    argument(
        "--wait",
        action="store_true",
        help="Wait until the run has ended or paused, and show its progress. Exit status 1 unless all items are done.",
    ),
)


class WaitedRun(MapRunRecord):
    """A run after --wait: `lcm` exits with 1 unless all of its items are done."""

    @property
    def is_complete(self) -> bool:
        return self.state is MapState.COMPLETED and not self.failed


_TERMS = (
    argument("--retain", default="", metavar="TEXT", help="What you stay responsible for, in words. Required."),
    argument("--delegated-scope", metavar="TEXT", help="The work handed over to agents. Required with --grant-id."),
    argument("--kept-work", metavar="TEXT", help="The work that you still do yourself. Required with --grant-id."),
    argument("--grant-id", metavar="ID", help="The grant that lets agents read more than their items."),
    argument(
        "--may-change",
        dest="read_only",
        action="store_false",
        default=None,
        help="Allow agents to change things outside LCM. Default: not allowed; LCM cannot enforce it.",
    ),
)


@verb(
    "map llm",
    *_COMMON,
    argument("--model", metavar="NAME", help="The language model. Default: the first configured one."),
    argument("--temperature", metavar="N", help="The model's temperature."),
    argument("--budget-tokens", metavar="N", help="The token budget; the run pauses when it is spent."),
)
def map_llm(session: Session, arguments: Namespace) -> Any:
    """Have a language model process each item of a file, or of standard input.

    Each output is one JSON value that matches the schema. The run continues in the background; `lcm map status` shows
    its progress. With --wait, Ctrl-C ends the waiting, not the run.
    """
    return _submit(session, arguments, MapKind.LLM)


@verb("map agentic", *_COMMON, *_TERMS)
def map_agentic(session: Session, arguments: Namespace) -> Any:
    """Offer each item of a file, or of standard input, to outside agents.

    Agents claim items, extend their leases by heartbeats and complete them (docs/map.md). --retain states what you stay
    responsible for; a run without it is refused.
    """
    return _submit(session, arguments, MapKind.AGENTIC)


def _submit(session: Session, arguments: Namespace, kind: MapKind) -> MapRunRecord:
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    wait, source, conversation = given.pop("wait"), given.pop("input"), given.pop("conversation", None)
    file_id = given.pop("file_id", None)
    given |= {"kind": kind.value, "output_schema": json_text.parse(read_argument(given.pop("schema")))}
    if conversation is not None:
        given["conversation_id"] = session.conversation_id(conversation)
    if file_id is None:
        if conversation is None:
            raise Invalid("With --in, name the conversation that gets the input and output files.", code="usage")
        _require_possible(kind, given)
        file_id = _store_input(session, int(given["conversation_id"]), source).file_id
    operation = OPERATIONS["lcm_map_submit"]
    texts = given.keys() - {"read_only", "output_schema"}
    run: MapRunRecord = operation.perform(session.caller, given | {"input_file_id": file_id}, in_text=texts).result
    return _wait_for_end(session, run) if wait else run


def _require_possible(kind: MapKind, given: dict[str, Any]) -> None:
    """Raise the refusals that need no input, before the input is stored as a file."""
    if kind is MapKind.AGENTIC and not given["retain"].strip():
        raise Invalid(NO_RETENTION, code="no_retention")
    checked_schema(given["output_schema"])


def _store_input(session: Session, conversation_id: int, source: str) -> LargeFileRecord:
    """Store the input as a file of the conversation."""
    service = LargeFileService.from_settings(session.caller_with(KeyScope.WRITE).scope)
    with opened(source) as file:
        content = file.read()
    name = "items" if source == STDIO else Path(source).name
    return service.store(conversation_id=conversation_id, content=content, file_name=name)


def _wait_for_end(session: Session, run: MapRunRecord) -> MapRunRecord:
    """Wait until the run has ended or paused, and return it; show its progress."""
    operator = MapOperator.from_settings(session.caller.scope)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[failed]}"))
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(run.run_id, total=run.total, failed="")
        try:
            while run.state in OPEN_STATES:
                time.sleep(SECONDS_BETWEEN_READS)
                run = operator.get_run(run_id=run.run_id)
                failed = f"{run.failed:,} failed" if run.failed else ""
                progress.update(task, completed=run.done + run.failed, failed=failed)
        except KeyboardInterrupt:
            sys.stderr.write(f"lcm: {run.run_id} continues; `lcm map status {run.run_id}` shows its progress.\n")
            raise
    return WaitedRun(**vars(run))


@verb(
    "map events",
    argument("run_id", nargs="?", metavar="RUN", help="The map run. Default: all runs of the workspace."),
    OUTPUT,
)
def export_events(session: Session, arguments: Namespace) -> Any:
    """Export the record of map runs as JSON Lines, one event per line.

    The events of each run are a hash chain (docs/map.md), which `lcm map verify` verifies from the file alone.
    """
    record = MapRecord.from_settings(session.caller_with(KeyScope.READ).scope)
    with opened(arguments.output, "xb") as file:
        report = record.export(file, run_id=arguments.run_id)
    return None if arguments.output == STDIO else report


@verb(
    "map verify",
    argument("file", metavar="FILE", help="The exported record, or - for standard input."),
    argument(
        "--expect",
        action="append",
        default=[],
        metavar="HASH",
        help="Fail unless this hash is present, such as the last one of a run in an earlier export; may be repeated.",
    ),
)
def verify_record(session: Session, arguments: Namespace) -> Any:
    """Recompute every hash of an exported record, and the chain of each run.

    A record whose hashes were all recomputed, or whose newest events were removed, passes this check; --expect detects
    both.
    """
    name = "standard input" if arguments.file == STDIO else Path(arguments.file).name
    with opened(arguments.file) as file:
        return verify_events(file, name=name, expected=arguments.expect)
