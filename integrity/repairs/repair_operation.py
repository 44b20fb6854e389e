"""The interface of repair operations: state, outlook, apply and undo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from conversations.audit import AuditLog
from conversations.errors import Conflict
from integrity.repairs.repair_planning import Step

Values = Mapping[str, Any]


class CannotRepair(Conflict):
    """A repair that is impossible for its target, and why."""

    code = "cannot_repair"


@dataclass(frozen=True)
class Target:
    """The target of a repair step."""

    conversation_id: int | None
    id: str
    why: str
    # The file with the ledger to restore from.
    ledger_file_id: str = ""

    @property
    def conversation(self) -> int:
        assert self.conversation_id is not None, "the planner gives it to every step but those about grants"
        return self.conversation_id

    @property
    def number(self) -> int:
        """The number in an id such as `job_12`."""
        return int(self.id.rpartition("_")[2])


class Operation(ABC):
    """One kind of repair; it runs in a transaction that locks the conversation."""

    step: ClassVar[Step]

    @abstractmethod
    def state(self, target: Target) -> Values:
        """Return the current values that the step depends on."""

    @abstractmethod
    def outlook(self, target: Target) -> Values:
        """Return the values after the step; nothing is written.

        Raises CannotRepair if the step has no effect.
        """

    def is_reversible(self, target: Target) -> bool:
        """Whether the step can be undone: the database may refuse the current values."""
        return True

    @abstractmethod
    def apply(self, target: Target, log: AuditLog) -> Values:
        """Apply the step, and return the values that undoing needs."""

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        """Restore the values before the step; CannotRepair if that is impossible."""
        raise CannotRepair(f"{self.step} of {target.id} cannot be undone: LCM deletes nothing that it recorded.")
