"""Processes beside the measuring one: each sets up Django for itself, and answers with what its function returns."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import django

from lcmsite.ops.processes import freeze_loaded

# Spawned and not forked: a connection to the database cannot be shared.
_SPAWNED = multiprocessing.get_context("spawn")
_beside: dict[str, Any] = {}


def together(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call a module's function in a process for each tuple of arguments; before these it is given a barrier for all."""
    barrier = _SPAWNED.Barrier(len(arguments))
    with ProcessPoolExecutor(len(arguments), _SPAWNED, initializer=_set_up, initargs=(barrier,)) as processes:
        return [each.result() for each in [processes.submit(_called, function, *each) for each in arguments]]


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a module's function in a process of its own; before these arguments it is given a barrier for one."""
    return together(function, [arguments])[0]


def _set_up(barrier: Any) -> None:
    django.setup()
    _beside["barrier"] = barrier


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    # As every process of LCM does: what is loaded by now stays.
    gc.collect()
    freeze_loaded()
    try:
        return function(_beside["barrier"], *arguments)
    except Exception:
        _beside["barrier"].abort()
        raise
