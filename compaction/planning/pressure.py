"""Whether a conversation should be compacted without anybody asking: said once, for the append and for the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.planning import planner
from compaction.policy import CompactionPolicy
from conversations.types import Counters


def wants_compaction(*, counters: Counters, overrides: Mapping[str, Any], policy: CompactionPolicy) -> bool:
    """From counters alone; nothing is read. False while automatic compaction is off, or rests for want of material."""
    own = policy.overridden(overrides)
    if not own.enabled or own.autocompact_disabled or counters.message_count < counters.rest_until_seq:
        return False
    return planner.trigger_of(counters, own) is not None
