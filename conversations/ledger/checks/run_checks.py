"""Whether what a ledger says of compactions and of hosts' boundaries can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conversations.ledger.checks.findings import Findings


@dataclass
class RunCheck:
    """The runs and boundaries of one conversation."""

    findings: Findings
    _run_ids: set[str] = field(default_factory=set)
    _references: set[str] = field(default_factory=set)

    def run(self, line: Mapping[str, Any]) -> None:
        """One more run: its figures add up."""
        run_id, before, after = line["run_id"], line["tokens_before"], line["tokens_after"]
        self.findings.require(run_id not in self._run_ids, "duplicate_run_id", f"{run_id} was there already")
        self._run_ids.add(run_id)
        # A summary that is made again may be longer than the one before it.
        may_grow = line["redone_summaries"] > 0
        self.findings.require(
            before >= 0 and after >= 0 and (after <= before or may_grow),
            "run_does_not_add_up",
            f"{run_id} says {before} tokens before and {after} after; where it is stored, `lcm check` finds it and a "
            "repair sets it right",
        )

    def boundary(self, line: Mapping[str, Any], *, last_seq: int) -> None:
        """One more boundary: it has a name of its own, and lies behind a message that is there."""
        name = line["host_reference"]
        self.findings.require(
            name not in self._references, "duplicate_boundary", f"the boundary {name[:80]!r} was there already"
        )
        self._references.add(name)
        self.findings.require(
            line["last_seq"] <= last_seq, "unknown_message", "this boundary lies behind the newest message"
        )
