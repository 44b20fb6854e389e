"""What compaction keeps: its jobs and runs, plans, the hosts' boundaries, and what it knows of the models it asks."""

from compaction.models.boundaries import CompactionBoundary
from compaction.models.endpoints import ModelEndpoint
from compaction.models.jobs import CompactionJob
from compaction.models.plans import CompactionPlan
from compaction.models.runs import CompactionRun

__all__ = ["CompactionBoundary", "CompactionJob", "CompactionPlan", "CompactionRun", "ModelEndpoint"]
