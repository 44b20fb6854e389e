"""The tables of compaction: jobs, runs, plans, boundaries and models."""

from compaction.models.boundaries import CompactionBoundary
from compaction.models.endpoints import ModelEndpoint
from compaction.models.jobs import CompactionJob
from compaction.models.plans import CompactionPlan
from compaction.models.runs import CompactionRun

__all__ = ["CompactionBoundary", "CompactionJob", "CompactionPlan", "CompactionRun", "ModelEndpoint"]
