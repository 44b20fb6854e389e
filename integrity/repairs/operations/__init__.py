"""All repair operations.

None of them edits, renumbers or deletes appended messages.
"""

from __future__ import annotations

from collections.abc import Mapping

from integrity.repairs.operations.operation import CannotRepair, Operation, Target, Values
from integrity.repairs.operations.rebuild_derived import RebuildContext, Recount
from integrity.repairs.operations.repair_lineage import RedoSummary, Relink
from integrity.repairs.operations.repair_work import CloseJob, CloseRun, ExpireGrant, MendRun
from integrity.repairs.operations.restore_from_ledger import RestoreFromLedger
from integrity.repairs.operations.withhold import Release, Withhold
from integrity.repairs.repair_planning import Step

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
