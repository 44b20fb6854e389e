"""Put the gateway's lookups back into the history of a request. Pure.

The agent has one answer where the model gave several, with calls of LCM's tools between them. The vendor gets the
original answers again, so that signed thinking blocks stay valid and the prefix stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.request_entries import build_entry
from lcmsite.gateway.window.types import Entry, Kind, WindowRequest

# By seq of the agent's answer: the model's own rows, and how many entries the agent has instead of them.
StoredLookups = Mapping[int, Mapping[str, Any]]


def unfold_lookups(request: WindowRequest, looked_up: StoredLookups, *, counter: RequestCounter) -> WindowRequest:
    """Replace merged answers in a request by the model's own, with their lookups."""
    if not looked_up:
        return request
    found: list[Entry] = []
    results: Sequence[Any] = ()
    for index, entry in enumerate(request.entries):
        if results:
            entry, results = _with_results(entry, results, counter), ()
        found.append(entry)
        following = request.entries[index + 1 :][:1]
        lookup = looked_up.get(entry.seq or 0)
        if lookup is None or (following and following[0].seq == entry.seq):
            continue
        shown = found[-int(lookup["visible"]) :]
        is_in_messages = request.surface is Surface.MESSAGES and bool(lookup["results"])
        is_whole = len(shown) == lookup["visible"] and not _reaches_back(found, len(shown))
        if not is_whole or (is_in_messages and not _takes_results(following)):
            continue
        del found[-len(shown) :]
        rows = lookup["rows"] if is_in_messages else [*lookup["rows"], *lookup["results"]]
        found += [build_entry(request.surface, row, entry.seq, counter) for row in rows]
        if is_in_messages:
            results = lookup["results"][0]["content"]
    return replace(request, entries=tuple(found))


def _reaches_back(entries: Sequence[Entry], visible: int) -> bool:
    """Whether one of the last `visible` entries does not belong to the last answer."""
    shown = entries[-visible:]
    if any(entry.kind is not Kind.MODEL for entry in shown):
        return True
    oldest = (shown[-1].seq or 0) - visible + 1
    seqs = [None, *(entry.seq for entry in entries)][-visible - 1 :]
    # An entry that is not stored by itself has the seq of the one before it.
    return any(seq != before and (seq or 0) < oldest for before, seq in pairwise(seqs))


def _takes_results(following: Sequence[Entry]) -> bool:
    return bool(following) and following[0].kind is Kind.RESULT and isinstance(following[0].value.get("content"), list)


def _with_results(entry: Entry, results: Sequence[Any], counter: RequestCounter) -> Entry:
    """Put the results of LCM's tools before those of the agent's own calls."""
    value = {**entry.value, "content": [*results, *entry.value["content"]]}
    ids = tuple(str(each["tool_use_id"]) for each in results)
    return replace(counter.replace_value(entry, value), answers=(*ids, *entry.answers), looked_up=ids)
