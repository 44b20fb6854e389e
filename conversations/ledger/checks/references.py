"""Whether each reference of a message to a file names a place that the message has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from conversations.cutting import CONTENT, FIELDS
from conversations.ledger.checks.findings import Findings
from conversations.ledger.checks.memory import MessageMemory

# What stands for a file begins so: only the lengths of texts that have it are remembered.
_STUB = "<large_file "
_FIELDS = frozenset(name for names in FIELDS.values() for name in names)
_NAMED = "file_url"

# A text of a message: its seq, the part that it is in, if any, and the name of the field.
_Text = tuple[int, int | None, str]


@dataclass
class ReferenceCheck:
    """The references of one conversation."""

    findings: Findings
    memory: MessageMemory
    _lengths: dict[_Text, int] = field(default_factory=dict)

    def message(self, line: Mapping[str, Any]) -> None:
        """Remember how long its texts are in which a file may stand."""
        for where, value in _texts(line):
            if _STUB in value:
                self._lengths[where] = len(value)

    def reference(self, line: Mapping[str, Any]) -> None:
        """One reference; that message and file are there is looked at elsewhere."""
        message = self.memory.get(line["seq"])
        if message is None:
            return
        ordinal, name = line["part_ordinal"], line["field"]
        start, length = line["start_at"], line["length"]
        has_part = ordinal is None or ordinal < message.chained_parts
        if start is None and length is None:
            is_there = ordinal is not None and has_part and name == _NAMED
        elif start is None or not length:
            is_there = False
        else:
            is_known = name == CONTENT if ordinal is None else name in _FIELDS
            # The texts of an erased message are gone.
            reaches = self._lengths.get((line["seq"], ordinal, name), 0)
            is_there = is_known and has_part and (bool(message.is_erased) or start + length <= reaches)
        self.findings.require(
            is_there,
            "reference_out_of_place",
            f"message {line['seq']} has no such place for {line['file_id']}: part, field or characters are not there",
        )


def _texts(line: Mapping[str, Any]) -> Iterator[tuple[_Text, str]]:
    if line["content"] is not None:
        yield (line["seq"], None, CONTENT), line["content"]
    for part in line["parts"]:
        for name in _FIELDS & part.keys():
            yield (line["seq"], part["ordinal"], name), part[name]
