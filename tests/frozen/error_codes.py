"""Every code that a refusal can have, found in the code."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from conversations.errors import LcmError
from lcmsite.catalogue.problems import INTERNAL, KINDS
from lcmsite.cli.program import verbs
from lcmsite.gateway.gateway_app import UpstreamFailed
from tests.architecture.house.sources import trees


@dataclass(frozen=True, order=True)
class Refusal:
    """How a code comes: some come with several statuses."""

    code: str
    status: int
    exit_code: int
    retryable: bool


@cache
def refusals() -> tuple[Refusal, ...]:
    """The codes of errors themselves, and those given where one is raised."""
    # What is only imported when it is needed has errors, too.
    assert verbs() and issubclass(UpstreamFailed, LcmError)
    found = {Refusal(INTERNAL.code, INTERNAL.status, INTERNAL.exit_code, INTERNAL.retryable)}
    errors = {each.__name__: each for each in all_errors()}
    for error in errors.values():
        found.add(_refusal(error, error.code))
    for name, codes in _raised_with().items():
        if name in errors:
            found |= {_refusal(errors[name], code) for code in codes}
    return tuple(sorted(found))


def all_errors(base: type[LcmError] = LcmError) -> Iterator[type[LcmError]]:
    """Every class of errors that a service or an interface may raise."""
    for each in base.__subclasses__():
        yield each
        yield from all_errors(each)


def _refusal(error: type[LcmError], code: str) -> Refusal:
    kinds = {kind.error: kind for kind in KINDS}
    kind = next(kinds[base] for base in error.__mro__ if base in kinds)
    return Refusal(code, kind.status, kind.exit_code, error.retryable)


def _raised_with() -> dict[str, set[str]]:
    """The `code=` that is given to each class, by its name."""
    found: dict[str, set[str]] = defaultdict(set)
    for _, module in trees(holding="code="):
        for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
            for given in call.keywords:
                either = [given.value.body, given.value.orelse] if isinstance(given.value, ast.IfExp) else [given.value]
                if given.arg == "code":
                    codes = {each.value for each in either if isinstance(each, ast.Constant)}
                    found[ast.unparse(call.func).rpartition(".")[2]] |= codes
    return found
