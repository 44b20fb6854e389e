"""Every kind of repair there is. None of them edits, renumbers or removes what was said."""

from __future__ import annotations

from collections.abc import Mapping

from integrity.operations.base import CannotRepair, Operation, Target, Values
from integrity.operations.derived import RebuildContext, Recount
from integrity.operations.leftovers import CloseJob, CloseRun, ExpireGrant
from integrity.operations.lineage import RedoSummary, Relink
from integrity.operations.restoring import RestoreFromLedger
from integrity.operations.withholding import Release, Withhold
from integrity.planning import Step

OPERATIONS: Mapping[Step, Operation] = {
    operation.step: operation
    for operation in (
        RestoreFromLedger(),
        Relink(),
        Withhold(),
        Release(),
        RedoSummary(),
        RebuildContext(),
        Recount(),
        CloseJob(),
        CloseRun(),
        ExpireGrant(),
    )
}

__all__ = ["OPERATIONS", "CannotRepair", "Operation", "Target", "Values"]
