"""An operation: its name on each interface, and the service method it calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_type_hints

from conversations.errors import LcmError
from conversations.param_fields import Params
from lcmsite.access.keys import Caller
from lcmsite.api.concurrency import cancelled_with_client, gate
from lcmsite.catalogue.paging import Paging
from lcmsite.types import KeyScope

# The prefix of every path of the REST API.
PREFIX = "/api/v1/"
# First words of two-word commands, such as `map status`.
_FAMILIES = frozenset({"map"})
_PLACEHOLDER = re.compile(r"{(\w+)}")
_ONE_CONVERSATION = "conversations/{conversation_id}/"
_INNER_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
# The name of an error's class, and a more specific code after it: "Conflict `plan_outdated`", "Conflict (`plan_over`)".
_ERROR = re.compile(r"\b([A-Z][A-Za-z]+)\b(?:\s+(?:(`[a-z_]+`)|\((`[a-z_]+`)\)))?")


class Answer(NamedTuple):
    """The result of a service, with the HTTP status for it."""

    result: Any
    status: int


@dataclass(frozen=True)
class Operation:
    """A service's method, its params, and its name on each interface.

    - `path`: names its params in braces; `everywhere` is a second path, for the whole workspace
    - `background`: the method called instead if the param `background` is true; it returns a job, with status 202
    - `operator_only`: only for the site administrator
    - `for_agents`: offered to agents over MCP, named like `tool`, or as given here
    - `heavy`: few of these run at once, and a GET is cancelled if its client disconnects (`api/concurrency.py`);
      `heavy_with` names a param that makes the operation heavy if given
    - `immutable`: sent with an ETag, and with 304 if the client has it
    - `paging`: how a list continues
    """

    service: type
    method: str
    params: type[Params]
    verb: Literal["GET", "POST", "PUT"]
    path: str
    tool: str
    scope: KeyScope = KeyScope.READ
    status: int = 200
    everywhere: str = ""
    background: str = ""
    operator_only: bool = False
    for_agents: bool | str = False
    heavy: bool = False
    heavy_with: str = ""
    immutable: bool = False
    paging: Paging | None = None

    def __post_init__(self) -> None:
        if self.paging is not None:
            object.__setattr__(self, "paging", replace(self.paging, salt=self.tool))

    @property
    def command(self) -> str:
        """The name on the command line: one word, or two such as `map status`."""
        name = self.tool.removeprefix("lcm_").replace("_", "-")
        family, _, rest = name.partition("-")
        return f"{family} {rest}" if family in _FAMILIES and rest else name

    @property
    def agent_tool(self) -> str:
        """The operation's MCP name; "" if agents do not have the operation."""
        return self.for_agents if isinstance(self.for_agents, str) else self.tool if self.for_agents else ""

    @property
    def chapter(self) -> str:
        """The chapter in documents: "Compaction engine" for CompactionEngine."""
        return _INNER_CAPITAL.sub(lambda found: f" {found[1].lower()}", self.service.__name__)

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.everywhere) if self.everywhere else (self.path,)

    @property
    def has_body(self) -> bool:
        return self.verb != "GET"

    @property
    def description(self) -> str:
        """The docstring of its service's method, with the codes of errors."""
        return with_error_codes(inspect.getdoc(getattr(self.service, self.method)) or "")

    @property
    def summary(self) -> str:
        return self.description.partition("\n")[0]

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The default values of the service method's parameters, by name."""
        parameters = inspect.signature(getattr(self.service, self.method)).parameters.values()
        return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}

    @property
    def returns(self) -> Any:
        return get_type_hints(getattr(self.service, self.method))["return"]

    @property
    def returns_in_background(self) -> Any:
        return get_type_hints(getattr(self.service, self.background))["return"]

    def may(self, caller: Caller) -> bool:
        return caller.may(self.scope) and (caller.is_operator or not self.operator_only)

    def require(self, caller: Caller) -> None:
        """Raise Forbidden unless this caller may call the operation."""
        caller.require(self.scope)
        if self.operator_only:
            caller.require_operator()

    def request_of(self, caller: Caller, values: Mapping[str, Any]) -> str:
        """What selects and orders the rows of a list: the cursors are bound to it."""
        # The number of a page counts pages of one size.
        is_numbered = self.paging is not None and self.paging.argument == "page"
        left_out = {"cursor"} if is_numbered else {"cursor", "limit"}
        given = {**self.defaults, **values}
        return repr((caller.scope.workspace_id, sorted((name, given[name]) for name in given.keys() - left_out)))

    def perform(self, caller: Caller, given: Mapping[str, Any], *, in_text: Collection[str] = ()) -> Answer:
        """Authorize the caller, validate the params, and call the service.

        Every interface calls services only through this method. Params named in `in_text` are parsed from text. Raises
        Forbidden, Invalid, TooManyAtOnce, and the errors of the service.
        """
        self.require(caller)
        values = self.params.accepted(given, in_text=in_text)
        service = self.service.from_settings(caller.scope)  # type: ignore[attr-defined]
        method, status = self.method, self.status
        heavy = self.heavy or bool(self.heavy_with and values.get(self.heavy_with))
        if self.background and values.pop("background", False):
            method, status, heavy = self.background, 202, False
        with (
            gate().entered(caller.scope.actor, heavy=heavy),
            cancelled_with_client() if heavy and self.verb == "GET" else nullcontext(),
        ):
            call = getattr(service, method)
            if self.paging is not None:
                request = self.request_of(caller, values)
                limit = values.pop("limit", self.defaults["limit"])
                return Answer(self.paging.page(call, values, limit=limit, request=request), status)
            return Answer(call(**values), status)


def with_error_codes(docstring: str) -> str:
    """Replace "Raises NotFound" by "Fails with `not_found`", as clients get errors."""
    codes, text = dict(_error_codes(LcmError)), re.sub(r"\braises\b", "fails with", docstring)
    text = re.sub(r"\bRaises\b", "Fails with", text)
    return _ERROR.sub(lambda at: (at[2] or at[3] or f"`{codes[at[1]]}`") if at[1] in codes else at[0], text)


def pieces(docstring: str) -> list[str]:
    """Split a description into paragraphs and list items; "" is a blank line."""
    return re.split(r"\n(?=\n|- )|(?<=\n)\n", docstring)


def _error_codes(error: type[LcmError]) -> Iterator[tuple[str, str]]:
    """The class names and codes of an error and its subclasses."""
    yield error.__name__, error.code
    for each in error.__subclasses__():
        yield from _error_codes(each)


def placeholders(path: str) -> tuple[str, ...]:
    """The names of the params in a path's braces."""
    return tuple(_PLACEHOLDER.findall(path))


def metric_name(operation: Operation, path: str) -> str:
    """The operation's name in metrics; its second path has a name of its own."""
    return operation.tool.removeprefix("lcm_") + ("" if path == operation.path else "_everywhere")


def operation_id(operation: Operation, path: str) -> str:
    """The operation's name in OpenAPI, such as `messages_append`."""
    static = [each for each in path.removeprefix(_ONE_CONVERSATION).split("/") if each and not each.startswith("{")]
    resource = (static[-1] if operation.method.startswith("list_") else static[0]) if static else "conversations"
    verb, *rest = operation.method.split("_")
    if verb == "list" or (operation.paging is not None and not operation.paging.is_of_record and verb == "get"):
        action = "list"
    elif verb == "get":
        action = "show"
    else:
        nouns = {*_singular_and_plural(resource), "conversation", "conversations"}
        words = [each for each in (verb, *rest) if each not in nouns]
        action = "_".join(words) or ("show" if operation.verb == "GET" else "run")
    return f"{resource.replace('-', '_')}_{action}" + ("" if path == operation.path else "_everywhere")


def _singular_and_plural(resource: str) -> set[str]:
    words = set(resource.split("-"))
    return words | {each.removesuffix("s") for each in words} | {each.removesuffix("ies") + "y" for each in words}
