"""Policies of retention and of checks."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.policy import Policy, knob

# A hundred years: the setting for a workspace whose texts stay hot whatever the site's default is.
MOST_DAYS = 36_500


@dataclass(frozen=True)
class RetentionPolicy(Policy):
    cold_after_days: int = knob(
        0,
        "Days without use after which a conversation's texts move to the cold tier, unless its workspace has its own "
        "setting; 0 for never.",
        low=0,
        high=MOST_DAYS,
    )
    # How long one request or one sweep moves texts to the cold tier or back, in seconds; the next one continues.
    archive_seconds: int = 20
    # How long a previewed erasure can be confirmed, in minutes.
    erasure_minutes: int = 60


@dataclass(frozen=True)
class IntegrityPolicy(Policy):
    """How often and how gently checks run."""

    # How often changed conversations are checked, in minutes; 0 for never.
    scan_interval_minutes: int = 60
    # The hour of the day (UTC) of the full check; -1 for never.
    full_scan_hour: int = 3
    # How long a scan runs before it yields the worker to other tasks, in seconds.
    scan_seconds: int = 60
    # How long a scan pauses between two batches of conversations, in milliseconds.
    scan_pause_ms: int = 100
    # The timeout of one query of a scan, in seconds; the report names conversations that exceed it.
    scan_statement_seconds: int = 300
    # How long reports without an applied repair are kept, in days.
    kept_report_days: int = 90
    # How often an anchor with the heads of all chains is signed, in minutes; 0 for never.
    anchor_interval_minutes: int = 24 * 60
