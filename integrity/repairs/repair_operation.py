"""The interface of repair operations: state, outlook, apply and undo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from conversations.audit import AuditLog
from conversations.errors import Conflict
from integrity.models import RepairStep
from integrity.repairs.repair_planning import Step

Values = Mapping[str, Any]


class CannotRepair(Conflict):
    """The repair is impossible for its target; `detail` says why."""

    code = "cannot_repair"


class Operation(ABC):
    """One kind of repair; it runs in a transaction that locks the conversation."""

    kind: ClassVar[Step]

    @abstractmethod
    def state(self, step: RepairStep) -> Values:
        """Return the current values that the step depends on."""

    @abstractmethod
    def outlook(self, step: RepairStep) -> Values:
        """Return the values after the step; nothing is written.

        Raises CannotRepair if the step has no effect.
        """

    def is_reversible(self, step: RepairStep) -> bool:
        """Whether the step can be undone: the database may refuse the current values."""
        return True

    @abstractmethod
    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        """Apply the step, and return the values that undoing needs."""

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        """Restore the values before the step; raises CannotRepair if impossible."""
        raise CannotRepair(f"{self.kind} of {step.target} cannot be undone: LCM deletes nothing that it recorded.")
