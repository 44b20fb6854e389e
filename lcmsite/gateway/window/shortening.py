"""Build the shorter request: kept entries, and one block of summaries. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.breakpoints import breakpoint_behind_summaries
from lcmsite.gateway.window.choosing_cut import ShortenEntry, opening_of, question_at
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.request_entries import build_entry
from lcmsite.gateway.window.summary_block import block_entry
from lcmsite.gateway.window.types import Cut, Entry, Kind, Shortened, WindowRequest

_THOUGHTS = ("thinking", "redacted_thinking")


@dataclass(frozen=True)
class Parts:
    """The entries of a request, divided by a cut."""

    # All entries before the tail, kept or not.
    before: tuple[Entry, ...]
    opening: tuple[Entry, ...]
    system: tuple[Entry, ...]
    left_out: tuple[Entry, ...]
    pinned: tuple[Entry, ...]
    tail: tuple[Entry, ...]
    results_shortened: int = 0

    @property
    def seqs_left_out(self) -> list[int]:
        return sorted({entry.seq for entry in self.left_out if entry.kind is not Kind.SYSTEM and entry.seq is not None})

    @property
    def system_left_out(self) -> list[Entry]:
        return [entry for entry in self.left_out if entry.kind is Kind.SYSTEM]


def parts_of(request: WindowRequest, cut: Cut, *, shorten_entry: ShortenEntry, counter: RequestCounter) -> Parts | None:
    """Divide a request by a cut; None if the cut belongs to another history."""
    first_answer = opening_of(request.entries).stop
    opening_end = first_answer if cut.opening_seq else 0
    start = _start_of(request.entries, cut, opening_end)
    if start is None:
        return None
    before, behind = request.entries[:start], request.entries[start:]
    pinned = tuple(
        entry for entry in before[opening_end:] if entry.seq in cut.pinned_seqs and entry.kind is Kind.QUESTION
    )
    if {entry.seq for entry in pinned} != set(cut.pinned_seqs):
        return None
    most = cut.most_result_tokens
    results = tuple(
        entry if most is None or entry.seq is None or entry.seq > cut.made_at_seq else shorten_entry(entry, most)
        for entry in behind
    )
    question = question_at(before, before.index(pinned[0])) if pinned else range(0)
    system, system_left_out = _divide_system(
        before, always={*range(first_answer), *question}, most_tokens=cut.most_system_tokens
    )
    keeps_thoughts = request.surface is not Surface.MESSAGES or request.needs_thoughts
    return Parts(
        before=before,
        opening=tuple(entry for entry in before[:opening_end] if entry.kind is not Kind.SYSTEM),
        system=system,
        left_out=(
            *(entry for entry in before[opening_end:] if entry.kind is not Kind.SYSTEM and entry not in pinned),
            *system_left_out,
        ),
        pinned=pinned,
        tail=results if keeps_thoughts else _without_thoughts(results, through_seq=cut.made_at_seq, counter=counter),
        results_shortened=sum(new is not old for new, old in zip(results, behind, strict=True)),
    )


def shorten(request: WindowRequest, parts: Parts, *, block: str | None, counter: RequestCounter) -> Shortened:
    """Build the request of the kept parts, with the block in place of the rest."""
    kept = [*parts.opening, *parts.system, *parts.pinned, *parts.tail]
    block_entries: list[Entry] = []
    if block is not None:
        cache_breakpoint = (
            breakpoint_behind_summaries(kept, elsewhere=request.breakpoints)
            if request.surface is Surface.MESSAGES
            else None
        )
        value = block_entry(request.surface, block, cache_breakpoint)
        block_entries = [build_entry(request.surface, value, None, counter)]
    ordered = _ordered(request.surface, parts, block_entries, counter)
    listed = f"[{','.join(entry.text for entry in ordered)}]"
    body = f"{request.body[: request.start]}{listed}{request.body[request.end :]}"
    return Shortened(
        body=body.encode(),
        tokens=request.head_tokens + sum(entry.tokens for entry in ordered),
        left_out=len(parts.left_out),
        results_shortened=parts.results_shortened,
    )


def _ordered(surface: Surface, parts: Parts, block_entries: Sequence[Entry], counter: RequestCounter) -> list[Entry]:
    """Return the entries in sending order: the client's, if none is left out.

    The Messages API accepts a system message only after a user's and before an assistant's or the end, never
    two in a row.
    """
    if not parts.left_out:
        return [*parts.before, *parts.tail]
    if surface is not Surface.MESSAGES:
        return [*parts.system, *parts.opening, *block_entries, *parts.pinned, *parts.tail]
    behind = [*parts.pinned, *parts.tail]
    first = next((index for index, entry in enumerate(behind) if entry.kind is Kind.MODEL), len(behind))
    system = [*parts.system, *(entry for entry in behind[:first] if entry.kind is Kind.SYSTEM)]
    questions = [entry for entry in behind[:first] if entry.kind is not Kind.SYSTEM]
    return [*parts.opening, *block_entries, *questions, *_merge_system(system, counter), *behind[first:]]


def _merge_system(system: Sequence[Entry], counter: RequestCounter) -> list[Entry]:
    """Merge system messages into one, with the blocks of all."""
    if len(system) < 2:
        return list(system)
    value = {**system[0].value, "content": [block for entry in system for block in _blocks(entry.value["content"])]}
    return [counter.replace_value(system[0], value)]


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _divide_system(
    entries: Sequence[Entry], *, always: Collection[int], most_tokens: int | None
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Divide system messages into those that are kept, and those left out, in order.

    Beside those at the indexes `always`, and those that are not stored, the newest that fit in `most_tokens` are kept.
    """
    kept: list[Entry] = []
    left_out: list[Entry] = []
    tokens = 0
    for index, entry in reversed([*enumerate(entries)]):
        if entry.kind is not Kind.SYSTEM:
            continue
        if index in always or entry.seq is None:
            kept.append(entry)
        elif most_tokens is None or tokens + entry.tokens <= most_tokens:
            kept.append(entry)
            tokens += entry.tokens
        else:
            left_out.append(entry)
    return tuple(reversed(kept)), tuple(reversed(left_out))


def _start_of(entries: Sequence[Entry], cut: Cut, opening_end: int) -> int | None:
    """Return the index at which the tail begins; None if the cut does not apply."""
    if cut.first_seq is None:
        return opening_end
    return next((at for at in range(opening_end, len(entries)) if entries[at].seq == cut.first_seq), None)


def _without_thoughts(entries: Sequence[Entry], *, through_seq: int, counter: RequestCounter) -> tuple[Entry, ...]:
    """Return the entries, without thinking blocks of the model up to `through_seq`.

    The vendor accepts a signed thinking block only after the exact history after which it was written. An entry that
    has only thinking blocks is left out.
    """
    kept: list[Entry] = []
    for entry in entries:
        is_before = entry.kind is Kind.MODEL and entry.seq is not None and entry.seq <= through_seq
        content = entry.value.get("content")
        if is_before and isinstance(content, list) and any(map(_is_thought, content)):
            rest = [block for block in content if not _is_thought(block)]
            if not rest:
                continue
            entry = counter.replace_value(entry, {**entry.value, "content": rest})
        kept.append(entry)
    return tuple(kept)


def _is_thought(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _THOUGHTS
