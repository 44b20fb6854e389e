"""Follow the steps of a plan, or report what has changed since it was made. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.planning import planner
from compaction.planning.forecast import PlannedStep, item_of
from compaction.planning.planner import Slot
from compaction.planning.steps import Step, Steps, Summaries
from compaction.policy import SHELL_TOKENS, CompactionPolicy
from conversations.errors import Conflict
from conversations.types import SummaryKind

# Maximum number of changed items that an error lists; after another compaction there may be thousands.
MOST_NAMED = 20
_NOT_CHEAPER = "no summary of it would have been cheaper than what it stands for"


class PlanOutdated(Conflict):
    """The context or the settings have changed since the plan was made."""

    code = "plan_outdated"


def settings_in_force(policy: CompactionPolicy) -> dict[str, Any]:
    """Return the settings that a conversation may override; they shape the summaries."""
    return {
        name: getattr(policy, name)
        for name, knob in policy.__dataclass_fields__.items()
        if knob.metadata.get("per_conversation")
    }


def context_hash(steps: Sequence[PlannedStep], settings: Mapping[str, Any]) -> str:
    """Hash the context items that the steps replace, and the settings in force."""
    items = [[item.ordinal, item.id, item.tokens] for step in steps for item in step.items]
    return hashlib.sha256(json.dumps([items, settings], sort_keys=True).encode()).hexdigest()


def item_changes(
    steps: Sequence[PlannedStep], slots: Sequence[Slot], policy: CompactionPolicy, last_seq: int
) -> list[Any]:
    """Return the context items that can no longer be summarized as planned, and why.

    Messages after `last_seq` do not matter, unless an item has become part of the fresh tail, or of an atom that
    contains such a message.
    """
    current = {slot.ordinal: slot for slot in slots}
    protected = planner.fresh_tail(slots, policy)
    tied = {
        slot.ordinal for atom in planner.atoms(slots) if atom[0].ordinal <= last_seq < atom[-1].ordinal for slot in atom
    }
    changes = []
    for item in (item for step in steps for item in step.items):
        slot = current.get(item.ordinal)
        now = None if slot is None else item_of(slot)
        if now is None:
            change = "gone"
        elif now.id != item.id:
            change = "replaced"
        elif now.tokens != item.tokens:
            change = "recounted"
        elif item.ordinal in protected:
            change = "protected"
        elif item.ordinal in tied:
            change = "belongs together with a newer message"
        else:
            continue
        changes.append({"ordinal": item.ordinal, "id": item.id, "change": change, "now": now and now.id})
    return changes


def setting_changes(were: Mapping[str, Any], are: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ, with old and new values; None if missing."""
    return {
        name: {"was": were.get(name), "is": are.get(name)}
        for name in sorted(were.keys() | are.keys())
        if were.get(name) != are.get(name)
    }


@dataclass
class PlanExecution:
    """The execution of a plan; `details` lists the steps made, skipped and left."""

    plan_id: str
    last_seq: int
    settings: Mapping[str, Any]
    plan: tuple[PlannedStep, ...]

    def __post_init__(self) -> None:
        numbers = [each.step.number for each in self.plan]
        self.details: dict[str, Any] = {
            "plan_id": self.plan_id, "steps_made": [], "steps_skipped": [], "steps_left": numbers
        }  # fmt: skip

    def require_unchanged(self, slots: Sequence[Slot], policy: CompactionPolicy) -> None:
        """Raise PlanOutdated, with the changes, if the steps cannot be made as planned."""
        items = item_changes(self.plan, slots, policy, self.last_seq)
        settings = setting_changes(self.settings, settings_in_force(policy))
        if items or settings:
            raise PlanOutdated(
                f"Since plan {self.plan_id} was made, {_describe(items, settings)}; nothing was done. Make another.",
                plan_id=self.plan_id,
                items=items[:MOST_NAMED],
                items_changed=len(items),
                settings=settings,
            )

    def steps(self, slots: Sequence[Slot], policy: CompactionPolicy) -> Steps:
        """Yield the planned steps, on slots that passed `require_unchanged`."""
        context = {slot.ordinal: slot for slot in slots}
        summaries = Summaries(slots)
        for planned in self.plan:
            number = planned.step.number
            step = self._resolve(planned, context, summaries, policy)
            slot = (yield step) if isinstance(step, Step) else None
            self.details["steps_left"].remove(number)
            if slot is None or isinstance(step, str):
                why = step if isinstance(step, str) else _NOT_CHEAPER
                self.details["steps_skipped"].append({"step": number, "why": why})
                continue
            for source in step.chunk:
                del context[source.ordinal]
            context[slot.ordinal] = slot
            if planned.step.kind is SummaryKind.LEAF:
                summaries.add(slot)
            self.details["steps_made"].append({"step": number, "summary_id": slot.summary_id})

    def _resolve(
        self, planned: PlannedStep, context: Mapping[int, Slot], summaries: Summaries, policy: CompactionPolicy
    ) -> Step | str:
        """Return the step with its current slots, or the reason to skip it."""
        skipped = {each["step"] for each in self.details["steps_skipped"]}
        if missing := [each for each in planned.step.from_steps if each in skipped]:
            return f"step {missing[0]}, whose summary it takes, made none"
        chunk = tuple(context[ordinal] for ordinal in planned.ordinals)
        if planned.step.kind is SummaryKind.LEAF:
            return Step(chunk, SummaryKind.LEAF, planned.step.target_tokens, summaries.before(chunk[0].ordinal))
        # If sources are shorter than expected, the target is lower, too.
        target = min(planned.step.target_tokens, planner.condensed_target(chunk, policy))
        if not planner.is_worthwhile(chunk, target):
            tokens = planner.sum_tokens(chunk)
            return f"a summary of {target} + {SHELL_TOKENS} tokens is too long for sources of {tokens}"
        return Step(chunk, SummaryKind.CONDENSED, target)


def _describe(items: Sequence[Any], settings: Mapping[str, Any]) -> str:
    changes = []
    if items:
        first = items[0]
        more = f" and {len(items) - 1} more" if len(items) > 1 else ""
        changes.append(f"context items have changed ({first['id']}: {first['change']}{more})")
    if settings:
        changed = ", ".join(f"{name} {each['was']!r:.60} to {each['is']!r:.60}" for name, each in settings.items())
        changes.append(f"settings have changed ({changed})")
    return " and ".join(changes)
