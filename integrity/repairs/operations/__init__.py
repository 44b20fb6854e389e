"""Every kind of repair there is. None of them edits, renumbers or removes what was said."""

from __future__ import annotations

from collections.abc import Mapping

from integrity.repairs.operations.base import CannotRepair, Operation, Target, Values
from integrity.repairs.operations.derived import RebuildContext, Recount
from integrity.repairs.operations.leftovers import CloseJob, CloseRun, ExpireGrant
from integrity.repairs.operations.lineage import RedoSummary, Relink
from integrity.repairs.operations.restoring import RestoreFromLedger
from integrity.repairs.operations.runs import MendRun
from integrity.repairs.operations.withholding import Release, Withhold
from integrity.repairs.planning import Step

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
        MendRun(),
        CloseJob(),
        CloseRun(),
        ExpireGrant(),
    )
}

__all__ = ["OPERATIONS", "CannotRepair", "Operation", "Target", "Values"]
