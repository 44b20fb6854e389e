"""Callers of LCM for tests: one over REST, one on the command line; both for real, in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from django.test import Client

from conversations.models import Workspace
from lcmsite.access import keys
from lcmsite.catalogue.operation import Operation, placeholders
from lcmsite.cli.program import run
from tests.factories import a_workspace


def an_api_key(workspace: Workspace | None = None, *scopes: str) -> str:
    return keys.issue(workspace_id=(workspace or a_workspace()).pk, name="test", scopes=scopes or ("write",)).key


@dataclass(frozen=True)
class Reply:
    """What came back, whichever way it came."""

    status: int
    body: Any
    headers: Any = None


@dataclass(frozen=True)
class Api:
    """A client of the REST API with a key."""

    key: str

    def ask(self, verb: str, path: str, body: Any = None, query: dict[str, Any] | None = None) -> Reply:
        options: dict[str, Any] = {"content_type": "application/json"} if body is not None else {}
        data = body if isinstance(body, str | bytes) or body is None else json.dumps(body)
        response = Client().generic(
            verb,
            f"/api/v1/{path}",
            data or b"",
            query_params=query,
            headers={"Authorization": f"Bearer {self.key}"},
            **options,
        )
        return Reply(response.status_code, json.loads(response.content), response.headers)

    def get(self, path: str, **query: Any) -> Reply:
        return self.ask("GET", path, query=query)

    def post(self, path: str, body: Any) -> Reply:
        return self.ask("POST", path, body)

    def perform(self, operation: Operation, given: dict[str, Any]) -> Reply:
        """Ask an operation of the catalogue, as its line says that it is to be asked."""
        path = operation.path if all(name in given for name in placeholders(operation.path)) else operation.everywhere
        rest = {name: value for name, value in given.items() if name not in placeholders(path)}
        path = path.format(**given)
        return self.ask(operation.verb, path, rest) if operation.has_body else self.get(path, **rest)


@dataclass(frozen=True)
class Run:
    """What the command line answered."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> Any:
        return json.loads(self.err)


def lasting(answer: Any, fleeting: Collection[str]) -> Any:
    """The answer without the fields that are others every time it is asked."""
    if isinstance(answer, dict):
        return {name: lasting(value, fleeting) for name, value in answer.items() if name not in fleeting}
    return [lasting(each, fleeting) for each in answer] if isinstance(answer, list) else answer


def lcm(*arguments: str, stdin: bytes = b"") -> Run:
    """Run the command line as the operator, or as the holder of an `--api-key`."""
    out, err = _a_stream(), _a_stream()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin))):
        exit_code = run(arguments)
    return Run(exit_code, _written(out), _written(err))


def _a_stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    return stream.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]


def as_arguments(operation: Operation, given: dict[str, Any]) -> list[str]:
    """The operation and its params as somebody would type them."""
    fields = operation.params.model_fields
    positional = [name for name in (*placeholders(operation.path), *fields) if name in given]
    needed = [
        name for name in dict.fromkeys(positional) if fields[name].is_required() or name in placeholders(operation.path)
    ]
    options: list[str] = []
    for name, value in given.items():
        flag = name.replace("_", "-")
        if name in needed:
            continue
        if isinstance(value, bool):
            options.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            options += [f"--{flag}", json.dumps(value) if isinstance(value, list | dict) else str(value)]
    return [*operation.command.split(), *(str(given[name]) for name in needed), *options]
