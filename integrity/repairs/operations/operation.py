"""What a step of a repair plan is made of: what it looks at, what it does, and how it is taken back."""

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
    """A step that can do nothing for its target, and why."""

    code = "cannot_repair"


@dataclass(frozen=True)
class Target:
    """What a step is done to."""

    conversation_id: int | None
    id: str
    why: str
    # The file with the ledger from which things are put back.
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
    """One kind of repair. It runs in a transaction that holds the conversation."""

    step: ClassVar[Step]

    @abstractmethod
    def state(self, target: Target) -> Values:
        """What stands there now, as far as the step is about it. Two equal states are the same to the step."""

    @abstractmethod
    def outlook(self, target: Target) -> Values:
        """What will stand there, from what stands there now; nothing is written. CannotRepair if nothing would help."""

    def is_reversible(self, target: Target) -> bool:
        """Whether what stands there now could be put back; what the database itself refuses cannot."""
        return True

    @abstractmethod
    def apply(self, target: Target, log: AuditLog) -> Values:
        """Do it, and say what undoing it needs to know."""

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        """Put back what stood there before; CannotRepair for what cannot be taken back."""
        raise CannotRepair(f"{self.step} of {target.id} cannot be taken back: nothing that LCM records is removed.")
