"""Describe this LCM in one response: operations by level, limits, settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any

from django.conf import settings
from pydantic import Field

from conversations.files.large_files import LargeFileService
from conversations.files.uploads import UploadService
from conversations.param_fields import WHOLE, Flag, Params, optional
from conversations.scope import Scoped
from conversations.store.conversations import ConversationStore
from lcmsite.catalogue import json_schema
from lcmsite.catalogue.operation import PREFIX, Operation
from lcmsite.effective_settings import settings_in_force
from retrieval.delegation.expand_query import Delegation
from retrieval.delegation.grants import Grants
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.event_log import MapRecord
from retrieval.map.map_operator import MapOperator

DISCOVER, STORE, SUMMARIZE, DELEGATE = range(4)
PURPOSES: Mapping[int, str] = {
    DISCOVER: "Describe the operations and settings.",
    STORE: "Store conversations and files, and list them.",
    SUMMARIZE: "Make summaries, search and read, and verify everything.",
    DELEGATE: "Let other models and agents work on many items.",
}
# Services that are not listed here are of level SUMMARIZE.
_LEVELS: Mapping[type, int] = {
    ConversationStore: STORE,
    LargeFileService: STORE,
    UploadService: STORE,
    Delegation: DELEGATE,
    Grants: DELEGATE,
    MapOperator: DELEGATE,
    AgenticClaims: DELEGATE,
    MapRecord: DELEGATE,
}
_LIMITS = ("max_request_bytes", "request_timeout_seconds", "rate_limit")


class CapabilityParams(Params):
    """The level to describe, and the amount of detail."""

    level: Annotated[int, Field(ge=DISCOVER, le=DELEGATE), WHOLE] = optional("Only the operations of this level.")
    full: Flag = optional("Whether to also return the JSON Schema of each operation's params.")


@dataclass(frozen=True)
class CapableOperation:
    """An operation: its name on each interface, who may call it, and its params.

    `path` is its path in the REST API, and `everywhere` a second path for the whole workspace. `tool` is its name over
    MCP if it is offered to agents. `needs` is the scope that an API key must have; `operator` means that no key may
    call it, only the site administrator.
    """

    name: str
    command: str
    verb: str
    path: str
    everywhere: str | None
    tool: str | None
    needs: str
    sentence: str
    params: str
    params_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class CapabilityLevel:
    """One level of operations, from discovery to delegated work."""

    level: int
    purpose: str
    operations: tuple[CapableOperation, ...]


@dataclass(frozen=True)
class CapabilitySummary:
    """Version, operations by level, limits of a request, and current settings."""

    version: str
    openapi: str
    levels: tuple[CapabilityLevel, ...]
    limits: Mapping[str, float]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class CapabilityList(Scoped, ABC):
    """Discovery: what this LCM can do. A subclass provides the operations."""

    @property
    @abstractmethod
    def operations(self) -> Sequence[Operation]:
        """All operations of the catalogue."""

    def schema(self, *, level: int | None = None, full: bool = False) -> CapabilitySummary:
        """Describe what this LCM can do: operations by level, limits and settings.

        The levels are 0: this description; 1: storing and listing; 2: summaries, search and reading; 3: delegated work.
        Each operation has its command, its path, its tool, the scope it needs, and the schema name of its params;
        `full` adds their JSON Schema. The settings are defaults; a conversation may override some of them.
        """
        levels = PURPOSES if level is None else (level,)
        return CapabilitySummary(
            version=version("lcm"),
            openapi=f"{PREFIX}schema/",
            levels=tuple(
                CapabilityLevel(each, PURPOSES[each], tuple(self._operations(each, full=full))) for each in levels
            ),
            limits={name: getattr(settings.DEPLOYMENT, name) for name in _LIMITS},
            settings={
                setting.name.removeprefix("LCM_").lower(): setting.value
                for group in settings_in_force()
                for setting in group.settings
                if not (group.operator_only or setting.is_secret)
            },
        )

    def _operations(self, level: int, *, full: bool) -> Iterator[CapableOperation]:
        for operation in self.operations:
            if self._level(operation) == level:
                yield CapableOperation(
                    name=operation.tool,
                    command=f"lcm {operation.command}",
                    verb=operation.verb,
                    path=PREFIX + operation.path,
                    everywhere=PREFIX + operation.everywhere if operation.everywhere else None,
                    tool=operation.agent_tool or None,
                    needs="operator" if operation.operator_only else operation.scope.value,
                    sentence=operation.summary,
                    params=operation.params.__name__,
                    params_schema=_schema(operation) if full else None,
                )

    def _level(self, operation: Operation) -> int:
        if isinstance(self, operation.service):
            return DISCOVER
        return _LEVELS.get(operation.service, SUMMARIZE)


def _schema(operation: Operation) -> Mapping[str, Any]:
    whole = json_schema.of_params(operation.params, defaults=operation.defaults)
    return json_schema.self_contained(whole, json_schema.components_of([operation.params]))
