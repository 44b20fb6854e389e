"""What a careful forger would do: change one member of a line, and make every hash anew that seals it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from conversations.content import hashing
from conversations.ledger import message_checks
from conversations.ledger.lines import line_hash_of, line_of
from tests.conversations.ledger import verifier

Objects = list[dict[str, Any]]
Forge = Callable[[Objects], object]

DEEP: Any = 0
for _ in range(300):
    DEEP = [DEEP]

# Wrong types and ranges, characters and numbers that a column cannot hold, moments at the ends of time.
HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**400, 1.5, -0.0, 1e23, 1e-320,
    float("nan"), float("inf"), "", "x", "x" * 501, "x" * 100_000, "a\x00b", "\ud800", "a\udc00b", "\u4e2d\U0001f600",
    "content", "content; drop", "text_content", "file_url", "0" * 64, "f" * 64, "9" * 200_000, "-0", "0.00",
    "0001-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "2026-01-01T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00", "10000-01-01T00:00:00.000000Z",
    [], [1], [1, 1], [2**63], ["\ud800"], ["x", "x"], [None], DEEP, {}, {"a": DEEP}, {"\x00": 1}, {"a": "\ud800"},
    {"b": 1e23}, {"z": 1, "a": 2.50}, {"n": 10**400}, {"n": -0.0}, {"a": {"a": 1, "b": [None, True, "\u4e2d"]}},
)  # fmt: skip


def bytes_of(objects: Objects) -> bytes:
    """The ledger of these objects with all line hashes right, though it be JSON that a ledger never has."""
    previous, lines = "", []
    for values in objects:
        body = json.dumps({name: value for name, value in values.items() if name != "line_hash"}, separators=(",", ":"))
        encoded = body[:-1].encode("ascii")
        previous = line_hash_of(encoded, previous=previous)
        lines.append(line_of(encoded, previous))
    return b"".join(lines)


def seal_anew(objects: Objects) -> None:
    """Make the hashes of messages, parts and summaries anew; what has no hash, for what it is, keeps the one it had."""
    chain, hashes, tokens = "", {}, 0
    for line in objects:
        try:
            match line["type"]:
                case "conversation":
                    chain, hashes, tokens = "", {}, 0
                case "part":
                    _seal_part(line)
                case "message":
                    _seal_message(line, chain)
                    chain, tokens = line["chain_hash"], tokens + line["token_count"]
                    hashes[line["seq"]] = line["content_hash"]
                case "summary":
                    sources = [hashes[each] for each in (*line["source_seqs"], *line["source_ids"])]
                    line["summary_hash"] = hashing.summary_hash(sources, line["content"]).hex()
                    hashes[line["summary_id"]] = line["summary_hash"]
                case "session_summary":
                    sources = [hashes[each] for each in line["sources"]]
                    line["summary_hash"] = hashing.summary_hash(sources, line["content"]).hex()
                case "end":
                    line["chain_head"], line["total_tokens"] = chain or None, tokens
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError):
            continue


def _seal_message(line: dict[str, Any], chain: str) -> None:
    for part in line["parts"]:
        _seal_part(part)
    line["content_hash"] = hashing.content_hash(line["content"]).hex()
    line["metadata_hash"] = message_checks.metadata_hash_of(line)
    line["entry_hash"] = message_checks.entry_hash_of(line)
    if line["record_hash"] is not None:
        line["record_hash"] = message_checks.record_hash_of(line)
    line["chain_hash"] = message_checks.chain_hash_of(line, previous=chain)
    line["event_id"] = message_checks.event_id_of(line)
    line["actor"] = line["author"] or line["role"]


def _seal_part(part: dict[str, Any]) -> None:
    part["part_hash"] = message_checks.part_hash_of(part)


def of(objects: Objects, line_type: str, /, **wanted: Any) -> dict[str, Any]:
    """The first line of this type that has these values."""
    ours = (each for each in objects if each["type"] == line_type)
    return next(each for each in ours if all(each[name] == value for name, value in wanted.items()))


def changed(kind: str, **values: Any) -> Forge:
    return lambda objects: of(objects, kind).update(values)


def accepts(written: bytes) -> bool:
    """Whether the stranger's verifier finds nothing wrong."""
    try:
        verifier.verify(io.BytesIO(written))
    except (AssertionError, LookupError, ValueError, TypeError, AttributeError, UnboundLocalError, RecursionError):
        return False
    return True
