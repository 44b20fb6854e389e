"""Processes beside the measuring one: each sets up Django for itself, and answers with what its function returns."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import django

from lcmsite.ops.processes import freeze_loaded

# Spawned and not forked: a connection to the database cannot be shared.
_SPAWNED = multiprocessing.get_context("spawn")


def together(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call a module's function in a process for each tuple of arguments; before these it is given a barrier for all."""
    barrier = _SPAWNED.Barrier(len(arguments))
    pipes = []
    processes = []
    for each in arguments:
        here, there = _SPAWNED.Pipe(duplex=False)
        # Packed, for what is in it may not be imported before Django is set up.
        task = pickle.dumps((function.__module__, function.__name__, each))
        process = _SPAWNED.Process(target=_answer, args=(there, barrier, task))
        process.start()
        # So that its death ends the pipe.
        there.close()
        pipes.append(here)
        processes.append(process)
    answers = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a module's function in a process of its own; before these arguments it is given a barrier for one."""
    return together(function, [arguments])[0]


def _answer(pipe: Any, barrier: Any, task: bytes) -> None:
    django.setup()
    try:
        module, function, arguments = pickle.loads(task)
        work = getattr(importlib.import_module(module), function)
        # As every process of LCM does: what is loaded by now stays.
        gc.collect()
        freeze_loaded()
        pipe.send(work(barrier, *arguments))
    except Exception as failure:
        barrier.abort()
        pipe.send(failure)
