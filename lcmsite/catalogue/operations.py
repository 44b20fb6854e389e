"""The catalogue: one entry for each operation that LCM offers.

REST, OpenAPI, the command line and the MCP tools of agents are generated from this list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compaction import params as compaction
from compaction.background.statistics import CompactionActivity
from compaction.engine import CompactionEngine
from compaction.history.session_history import SessionHistory
from compaction.hosts.branching import Branches
from compaction.hosts.host_service import HostCompaction
from compaction.llm.endpoints import ModelEndpoints
from compaction.plans.plan_store import CompactionPlans
from conversations import params as conversations
from conversations.audit import AuditLog
from conversations.files.large_files import LargeFileService
from conversations.files.uploads import UploadService
from conversations.store.conversations import ConversationStore
from conversations.store.journal import Journal
from integrity import params as integrity
from integrity.checker import IntegrityChecker
from integrity.ledgers import Ledgers
from integrity.repairs.applying import Repairs
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention, StorageReport
from lcmsite.catalogue.capabilities import CapabilityList, CapabilityParams
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.paging import Paging
from lcmsite.types import KeyScope
from retrieval import params as retrieval
from retrieval.agent_turns import Turns
from retrieval.assembler import ContextAssembler
from retrieval.assembly.receipts import Receipts
from retrieval.delegation.expand_query import Delegation
from retrieval.delegation.grants import Grants
from retrieval.engine import RetrievalEngine
from retrieval.history.project_history import ProjectHistory
from retrieval.map import params as maps
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.event_log import MapRecord
from retrieval.map.map_operator import MapOperator

WRITE = KeyScope.WRITE
ADMIN = KeyScope.ADMIN
ALL = "conversations/"
ONE = ALL + "{conversation_id}/"
MAP_RUN = "map-runs/{run_id}/"
MAP_ITEM = "map-items/{item_id}/"


class Capabilities(CapabilityList):
    """Discovery: what this LCM can do, level by level."""

    @property
    def operations(self) -> Sequence[Operation]:
        return CATALOGUE


CATALOGUE: tuple[Operation, ...] = (
    # Discovery.
    Operation(Capabilities, "schema", CapabilityParams, "GET", "capabilities/", "lcm_schema", for_agents=True),
    # Conversations and their messages.
    Operation(ConversationStore, "open_conversation", conversations.OpenConversationParams, "POST", ALL, "lcm_open",
        scope=WRITE, for_agents=True),
    Operation(ConversationStore, "list_conversations", conversations.ListConversationsParams, "GET", ALL, "lcm_list",
        paging=Paging("after_id", "conversation_id"), for_agents=True),
    Operation(ConversationStore, "find_conversation", conversations.FindConversationParams, "GET", ALL + "find/",
        "lcm_find"),
    Operation(ConversationStore, "get_conversation", conversations.ConversationParams, "GET", ONE, "lcm_show"),
    Operation(ConversationStore, "change_conversation", conversations.ChangeConversationParams, "PUT", ONE,
        "lcm_change", scope=WRITE),
    Operation(ConversationStore, "configure_conversation", conversations.ConfigureConversationParams, "PUT",
        ONE + "overrides/", "lcm_configure", scope=WRITE),
    Operation(ConversationStore, "append_messages", conversations.AppendMessagesParams, "POST", ONE + "messages/",
        "lcm_append", scope=WRITE, status=201, for_agents=True),
    Operation(ConversationStore, "list_messages", conversations.ListMessagesParams, "GET", ONE + "messages/",
        "lcm_messages", paging=Paging("after_seq", "seq")),
    Operation(ConversationStore, "get_message", conversations.GetMessageParams, "GET", "messages/{message_id}/",
        "lcm_message", immutable=True, for_agents=True),
    Operation(ConversationStore, "get_context_items", conversations.ListContextItemsParams, "GET",
        ONE + "context-items/", "lcm_items", paging=Paging("after_ordinal", "ordinal")),
    # Branches.
    Operation(Branches, "move_head", conversations.MoveHeadParams, "POST", ONE + "head/", "lcm_rewind", scope=WRITE,
        heavy=True),
    Operation(Branches, "list_branches", conversations.ConversationPageParams, "GET", ONE + "branches/",
        "lcm_branches", paging=Paging("after_number", "number")),
    Operation(Branches, "fork_conversation", conversations.ForkParams, "POST", ONE + "forks/", "lcm_fork", scope=WRITE,
        status=201, heavy=True),
    # The journal: raw entries of agent programs (hosts).
    Operation(Journal, "append_entries", conversations.AppendEntriesParams, "POST", ONE + "journal/",
        "lcm_append_journal", scope=WRITE, status=201),
    Operation(Journal, "list_entries", conversations.ListEntriesParams, "GET", ONE + "journal/", "lcm_journal",
        paging=Paging("after_position", "position")),
    Operation(Journal, "list_subpaths", conversations.ConversationPageParams, "GET", ONE + "journal/subpaths/",
        "lcm_journal_subpaths", paging=Paging("after_subpath", "subpath")),
    # Compaction, its runs and its jobs.
    Operation(CompactionEngine, "evaluate", conversations.ConversationParams, "GET", ONE + "pressure/", "lcm_evaluate",
        for_agents="lcm_status"),
    Operation(CompactionEngine, "compact", compaction.BackgroundParams, "POST", ONE + "compactions/", "lcm_compact",
        scope=WRITE, status=201, background="request", heavy=True),
    Operation(CompactionEngine, "redo", compaction.BackgroundParams, "POST", ONE + "redo/", "lcm_redo", scope=WRITE,
        status=201, background="request_redo", heavy=True),
    Operation(CompactionEngine, "backfill", compaction.BackfillParams, "POST", ONE + "backfill/", "lcm_backfill",
        scope=WRITE, status=202, everywhere="backfill/"),
    Operation(CompactionEngine, "list_runs", compaction.ListRunsParams, "GET", ONE + "compactions/", "lcm_runs",
        paging=Paging("before_run", "run_id"), everywhere="compactions/"),
    Operation(CompactionEngine, "get_job", compaction.JobParams, "GET", "jobs/{job_id}/", "lcm_job"),
    Operation(CompactionEngine, "get_run", compaction.RunParams, "GET", "compactions/{run_id}/", "lcm_run"),
    Operation(CompactionActivity, "activity", compaction.ActivityParams, "GET", "activity/", "lcm_activity"),
    Operation(CompactionActivity, "list_jobs", compaction.ListJobsParams, "GET", ONE + "jobs/", "lcm_jobs",
        paging=Paging("before_id", "job_id"), everywhere="jobs/"),
    # Compaction plans.
    Operation(CompactionPlans, "plan", conversations.ConversationParams, "POST", ONE + "plans/", "lcm_plan",
        scope=WRITE, status=201, heavy=True),
    Operation(CompactionPlans, "list_plans", conversations.ConversationPageParams, "GET", ONE + "plans/", "lcm_plans",
        paging=Paging("before_plan", "plan_id")),
    Operation(CompactionPlans, "get_plan", compaction.PlanIdParams, "GET", "plans/{plan_id}/", "lcm_show_plan"),
    Operation(CompactionPlans, "execute_plan", compaction.ExecutePlanParams, "POST", "plans/{plan_id}/execution/",
        "lcm_execute_plan", scope=WRITE, status=201, background="request_execution", heavy=True),
    # Memory across conversations.
    Operation(SessionHistory, "summarize_session", compaction.BackgroundParams, "POST", ONE + "session-summary/",
        "lcm_summarize_session", scope=WRITE, status=201, background="request_session", heavy=True),
    Operation(SessionHistory, "redo_session", compaction.RedoSessionParams, "POST",
        "session-summaries/{summary_id}/redo/", "lcm_redo_session",
        scope=WRITE, status=201, background="request_redo_session", heavy=True),
    Operation(SessionHistory, "list_jobs", compaction.ListHistoryJobsParams, "GET", "history-jobs/", "lcm_history_jobs",
        paging=Paging("before_id", "job_id")),
    Operation(SessionHistory, "get_job", compaction.JobParams, "GET", "history-jobs/{job_id}/", "lcm_history_job"),
    # Agent programs (hosts) that compact by themselves.
    Operation(HostCompaction, "flush", compaction.FlushParams, "POST", ONE + "flushes/", "lcm_flush", scope=WRITE,
        status=201, background="flush_in_background", heavy=True, for_agents=True),
    Operation(HostCompaction, "record_boundary", compaction.BoundaryParams, "POST", ONE + "boundaries/", "lcm_boundary",
        scope=WRITE, status=201, for_agents=True),
    Operation(HostCompaction, "list_boundaries", conversations.ConversationPageParams, "GET", ONE + "boundaries/",
        "lcm_boundaries", paging=Paging("before_reference", "host_reference")),
    Operation(HostCompaction, "verify_coverage", compaction.CoverageParams, "POST", ONE + "coverage/", "lcm_coverage",
        heavy=True, for_agents=True),
    # Language models.
    Operation(ModelEndpoints, "list_endpoints", conversations.NoParams, "GET", "models/", "lcm_models",
        scope=ADMIN, operator_only=True),
    Operation(ModelEndpoints, "reset_endpoint", compaction.ResetEndpointParams, "POST", "models/{name}/reset/",
        "lcm_reset_model", scope=ADMIN, operator_only=True),
    # Files.
    Operation(LargeFileService, "store", conversations.StoreFileParams, "POST", ONE + "files/", "lcm_store_file",
        scope=WRITE, status=201),
    Operation(LargeFileService, "get", conversations.FileParams, "GET", "files/{file_id}/", "lcm_file", immutable=True),
    Operation(LargeFileService, "read", conversations.ReadFileParams, "GET", "files/{file_id}/content/",
        "lcm_read_file", immutable=True),
    Operation(LargeFileService, "read_lines", conversations.ReadFileLinesParams, "GET", "files/{file_id}/lines/",
        "lcm_read_lines", for_agents="lcm_read_file"),
    Operation(LargeFileService, "list_files", conversations.ListFilesParams, "GET", ONE + "files/", "lcm_files",
        paging=Paging("before", "file_id"), everywhere="files/"),
    # Uploads in chunks.
    Operation(UploadService, "begin", conversations.BeginUploadParams, "POST", ONE + "uploads/", "lcm_begin_upload",
        scope=WRITE, status=201),
    Operation(UploadService, "put_chunk", conversations.PutChunkParams, "PUT", "uploads/{upload_id}/chunks/{offset}/",
        "lcm_put_chunk", scope=WRITE),
    Operation(UploadService, "list_uploads", conversations.ConversationPageParams, "GET", ONE + "uploads/",
        "lcm_uploads", paging=Paging("before_upload", "upload_id")),
    Operation(UploadService, "get_upload", conversations.UploadParams, "GET", "uploads/{upload_id}/",
        "lcm_show_upload"),
    Operation(UploadService, "finish", conversations.UploadParams, "POST", "uploads/{upload_id}/finish/",
        "lcm_finish_upload", scope=WRITE, status=201),
    Operation(UploadService, "abort", conversations.UploadParams, "POST", "uploads/{upload_id}/abort/",
        "lcm_abort_upload", scope=WRITE),
    # Search, reading and assembly.
    Operation(RetrievalEngine, "grep", retrieval.GrepParams, "GET", ONE + "matches/", "lcm_grep", everywhere="matches/",
        for_agents=True, heavy=True),
    Operation(RetrievalEngine, "about", retrieval.AboutParams, "GET", ONE + "about/", "lcm_about", everywhere="about/",
        for_agents=True, heavy=True),
    Operation(RetrievalEngine, "describe", retrieval.DescribeParams, "GET", "items/{id}/", "lcm_describe",
        for_agents=True, immutable=True),
    Operation(RetrievalEngine, "describe_range", retrieval.RangeParams, "GET", ONE + "range/",
        "lcm_describe_range", for_agents=True, heavy=True),
    Operation(RetrievalEngine, "impact", retrieval.ImpactParams, "GET", "items/{id}/impact/", "lcm_impact",
        for_agents=True, heavy=True),
    Operation(RetrievalEngine, "expand", retrieval.ExpandParams, "GET", "summaries/{summary_id}/expansion/",
        "lcm_expand", for_agents=True, heavy=True),
    Operation(RetrievalEngine, "expand_range", retrieval.ExpandRangeParams, "GET", ONE + "expansion/",
        "lcm_expand_range", for_agents=True, heavy=True),
    Operation(Delegation, "expand_query", retrieval.ExpandQueryParams, "POST", "expand-queries/", "lcm_expand_query",
        for_agents=True, heavy=True),
    Operation(Grants, "list_grants", conversations.PageParams, "GET", "grants/", "lcm_grants",
        paging=Paging("before_grant", "grant_id")),
    Operation(Grants, "get_grant", retrieval.GrantParams, "GET", "grants/{grant_id}/", "lcm_grant"),
    Operation(Grants, "revoke_grant", retrieval.GrantParams, "POST", "grants/{grant_id}/revocation/",
        "lcm_revoke_grant", scope=WRITE),
    Operation(RetrievalEngine, "browse", retrieval.BrowseParams, "GET", ALL + "overviews/", "lcm_browse",
        paging=Paging("page", "next_page", is_of_record=True)),
    Operation(RetrievalEngine, "lineage", conversations.ConversationParams, "GET", ONE + "lineage/", "lcm_lineage",
        heavy=True),
    Operation(RetrievalEngine, "lineage_window", retrieval.LineageWindowParams, "GET", ONE + "lineage/window/",
        "lcm_lineage_window", heavy=True),
    Operation(ContextAssembler, "assemble", retrieval.AssembleParams, "GET", ONE + "context/", "lcm_assemble",
        for_agents=True, heavy_with="query"),
    Operation(Turns, "turn", retrieval.TurnParams, "POST", ONE + "turns/", "lcm_turn", scope=WRITE, status=201,
        heavy_with="query"),
    Operation(ContextAssembler, "recall", retrieval.RecallParams, "GET", ONE + "recall/", "lcm_recall",
        everywhere="recall/", for_agents=True, heavy_with="query"),
    Operation(Receipts, "list_receipts", conversations.ConversationPageParams, "GET", ONE + "receipts/",
        "lcm_receipts", paging=Paging("before_receipt", "receipt_id")),
    Operation(Receipts, "get_receipt", retrieval.ReceiptParams, "GET", "receipts/{receipt_id}/", "lcm_receipt",
        immutable=True),
    Operation(Receipts, "compare_receipts", retrieval.CompareReceiptsParams, "GET",
        "receipts/{receipt_id}/difference/", "lcm_compare_receipts"),
    # Memory across conversations.
    Operation(ProjectHistory, "list_projects", conversations.PageParams, "GET", "projects/", "lcm_projects",
        paging=Paging("after_name", "name")),
    Operation(ProjectHistory, "timeline", retrieval.TimelineParams, "GET", "session-summaries/", "lcm_timeline",
        paging=Paging("after", "place"), for_agents=True),
    Operation(ProjectHistory, "grep_sessions", retrieval.GrepSessionsParams, "GET", "session-summaries/matches/",
        "lcm_grep_sessions", paging=Paging("offset", "next_offset", is_of_record=True), heavy=True),
    Operation(ProjectHistory, "expand_session", retrieval.ExpandSessionParams, "GET",
        "session-summaries/{summary_id}/expansion/", "lcm_expand_session", for_agents=True, heavy=True),
    Operation(ProjectHistory, "session_ago", retrieval.SessionAgoParams, "GET", ONE + "session-ago/",
        "lcm_session_ago"),
    # Map runs, and the agents that work on their items.
    Operation(MapOperator, "submit", maps.SubmitMapParams, "POST", "map-runs/", "lcm_map_submit", scope=WRITE,
        status=202, for_agents="lcm_map", heavy=True),
    Operation(MapOperator, "list_runs", maps.ListMapRunsParams, "GET", "map-runs/", "lcm_map_runs",
        paging=Paging("before_run", "run_id")),
    Operation(MapOperator, "get_run", maps.MapRunParams, "GET", MAP_RUN, "lcm_map_status", for_agents=True),
    Operation(MapOperator, "list_items", maps.ListMapItemsParams, "GET", MAP_RUN + "items/", "lcm_map_items",
        paging=Paging("after_position", "position")),
    Operation(MapOperator, "output", maps.MapOutputParams, "GET", MAP_RUN + "output/", "lcm_map_output",
        paging=Paging("after_position", "next_position", is_of_record=True)),
    Operation(MapOperator, "pause", maps.MapRunParams, "POST", MAP_RUN + "pause/", "lcm_map_pause", scope=WRITE),
    Operation(MapOperator, "resume", maps.ResumeMapParams, "POST", MAP_RUN + "resume/", "lcm_map_resume", scope=WRITE),
    Operation(MapOperator, "cancel", maps.MapRunParams, "POST", MAP_RUN + "cancel/", "lcm_map_cancel", scope=WRITE),
    Operation(MapOperator, "retry_failed", maps.MapRunParams, "POST", MAP_RUN + "retry-failed/",
        "lcm_map_retry_failed", scope=WRITE),
    Operation(MapRecord, "list_events", maps.ListMapEventsParams, "GET", MAP_RUN + "events/", "lcm_map_record",
        paging=Paging("after_seq", "seq")),
    Operation(AgenticClaims, "claim", maps.ClaimItemsParams, "POST", MAP_RUN + "claims/", "lcm_map_claim", scope=WRITE,
        status=201),
    Operation(AgenticClaims, "heartbeat", maps.HeartbeatParams, "POST", MAP_ITEM + "heartbeat/", "lcm_map_heartbeat",
        scope=WRITE),
    Operation(AgenticClaims, "complete", maps.CompleteItemParams, "POST", MAP_ITEM + "completion/", "lcm_map_complete",
        scope=WRITE),
    Operation(AgenticClaims, "release", maps.HeldItemParams, "POST", MAP_ITEM + "release/", "lcm_map_release",
        scope=WRITE),
    # Integrity checks.
    Operation(IntegrityChecker, "run", integrity.CheckParams, "POST", ONE + "integrity-reports/", "lcm_check",
        everywhere="integrity-reports/", background="request", heavy=True),
    Operation(IntegrityChecker, "get_state", conversations.NoParams, "GET", "integrity/", "lcm_integrity"),
    Operation(IntegrityChecker, "get_scan", integrity.ScanParams, "GET", "scans/{scan_id}/", "lcm_scan"),
    Operation(IntegrityChecker, "list_reports", integrity.ListReportsParams, "GET", "integrity-reports/", "lcm_reports",
        paging=Paging("before_report", "report_id")),
    Operation(IntegrityChecker, "get_report", integrity.ReportParams, "GET", "integrity-reports/{report_id}/",
        "lcm_report", paging=Paging("after_id", "next_after_id", is_of_record=True)),
    # Repairs and quarantine.
    Operation(IntegrityChecker, "plan_repairs", integrity.PlanRepairsParams, "POST",
        "integrity-reports/{report_id}/repair-plans/", "lcm_plan_repairs", scope=WRITE, status=201, heavy=True),
    Operation(Repairs, "list_plans", integrity.ListRepairsParams, "GET", "integrity-reports/{report_id}/repair-plans/",
        "lcm_repair_plans", paging=Paging("before_plan", "repair_id"), everywhere="repair-plans/"),
    Operation(Repairs, "get_plan", integrity.RepairParams, "GET", "repair-plans/{repair_id}/", "lcm_repairs"),
    Operation(Repairs, "approve_steps", integrity.ApproveRepairsParams, "POST", "repair-plans/{repair_id}/approval/",
        "lcm_approve_repairs", scope=ADMIN),
    Operation(Repairs, "apply_plan", integrity.RepairParams, "POST", "repair-plans/{repair_id}/application/",
        "lcm_apply_repairs", scope=ADMIN, heavy=True),
    Operation(Repairs, "undo_plan", integrity.RepairParams, "POST", "repair-plans/{repair_id}/undoing/",
        "lcm_undo_repairs", scope=ADMIN, heavy=True),
    Operation(Quarantines, "list_quarantines", integrity.ListQuarantinesParams, "GET", "quarantines/",
        "lcm_quarantines", paging=Paging("before_id", "quarantine_id")),
    Operation(Quarantines, "quarantine", integrity.QuarantineParams, "POST", "items/{id}/quarantine/", "lcm_quarantine",
        scope=ADMIN, status=201),
    Operation(Quarantines, "read_quarantined", integrity.ReadQuarantinedParams, "GET", "items/{id}/quarantine/",
        "lcm_read_quarantined", scope=ADMIN),
    Operation(Quarantines, "release", integrity.ReleaseParams, "POST", "quarantines/{quarantine_id}/release/",
        "lcm_release", scope=ADMIN),
    # Retention and storage.
    Operation(Retention, "archive", conversations.ConversationParams, "POST", ONE + "archive/", "lcm_archive",
        scope=ADMIN, heavy=True),
    Operation(Retention, "thaw", conversations.ConversationParams, "POST", ONE + "thaw/", "lcm_thaw", scope=ADMIN,
        heavy=True),
    Operation(Retention, "get_retention", conversations.NoParams, "GET", "retention/", "lcm_retention"),
    Operation(Retention, "set_retention", integrity.SetRetentionParams, "PUT", "retention/", "lcm_set_retention",
        scope=ADMIN),
    Operation(StorageReport, "storage", conversations.NoParams, "GET", "storage/", "lcm_storage", heavy=True),
    # Erasure.
    Operation(Erasures, "preview_erasure", integrity.PreviewErasureParams, "POST", ONE + "erasures/",
        "lcm_preview_erasure", scope=ADMIN, status=201, heavy=True),
    Operation(Erasures, "erase", integrity.EraseParams, "POST", "erasures/{erasure_id}/execution/", "lcm_erase",
        scope=ADMIN, heavy=True),
    # The audit log.
    Operation(AuditLog, "list_acts", integrity.ListActsParams, "GET", "audit-log/", "lcm_audit",
        paging=Paging("before_id", "audit_id"), scope=ADMIN),
    # Rebuilding.
    Operation(Ledgers, "rebuild", conversations.ConversationParams, "POST", ONE + "rebuild/", "lcm_rebuild",
        scope=ADMIN, heavy=True),
)  # fmt: skip
OPERATIONS: Mapping[str, Operation] = {operation.tool: operation for operation in CATALOGUE}
