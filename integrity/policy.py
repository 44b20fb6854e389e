"""How long texts stay where they are, and how gently they are moved."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.policy import Policy, knob

# A hundred years: what a workspace says whose texts are to stay whatever the site's default is.
MOST_DAYS = 36_500


@dataclass(frozen=True)
class RetentionPolicy(Policy):
    cold_after_days: int = knob(
        0,
        "Whole days without use after which a conversation's texts move to the cold tier, in workspaces that say "
        "nothing else; 0 for never.",
        low=0,
        high=MOST_DAYS,
    )
    # How long one request or one wake-up of the worker goes on moving texts to the cold tier or back; the next
    # one goes on from there.
    archive_seconds: int = 20
    # How long a previewed erasure can be confirmed, in minutes.
    erasure_minutes: int = 60


@dataclass(frozen=True)
class IntegrityPolicy(Policy):
    """How often everything is looked through, and how gently."""

    # How often the conversations that have changed are looked through for damage, in minutes; 0 for never.
    scan_interval_minutes: int = 60
    full_scan_hour: int = knob(
        3,
        "The hour of the day (UTC) at which everything is looked through, unchanged or not; -1 for never.",
        low=-1,
        high=23,
    )
    # How long a scan works at a time before it lets others have the worker.
    scan_seconds: int = 60
    # How long a scan rests between two batches of conversations, in milliseconds.
    scan_pause_ms: int = 100
    # How long one question of a scan may take; a conversation that takes longer is named in the report.
    scan_statement_seconds: int = 300
    # How long reports are kept whose repairs nobody has applied, in days.
    kept_report_days: int = 90
    # How often the heads of all chains are signed and kept as an anchor, in minutes; 0 for never.
    anchor_interval_minutes: int = 24 * 60
