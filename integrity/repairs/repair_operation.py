"""The interface of repair operations: read, predict, apply and undo a change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from conversations.audit import AuditLog
from conversations.errors import Conflict
from integrity.models import RepairStep

Values = Mapping[str, Any]


class CannotRepair(Conflict):
    """The repair is impossible for its target; `detail` says why."""

    code = "cannot_repair"


class Operation(ABC):
    """One kind of repair; it runs in a transaction that has locked the conversation."""

    @abstractmethod
    def state(self, step: RepairStep) -> Values:
        """Return the current values that the step depends on."""

    @abstractmethod
    def outlook(self, step: RepairStep) -> Values:
        """Predict the values after the step, without writing anything.

        Raises CannotRepair if the step is impossible or would change nothing.
        """

    def is_reversible(self, step: RepairStep) -> bool:
        """Whether the step can be undone; the database may refuse to restore a value."""
        return True

    @abstractmethod
    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        """Apply the step, and return the values that `undo` needs."""

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        """Restore the values from before the step; CannotRepair if impossible."""
        raise CannotRepair(f"{step.operation} of {step.target} cannot be undone: LCM deletes nothing that it recorded.")
