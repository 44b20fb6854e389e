"""Everything that LCM does for a caller, one line an operation. REST, its schema, the command line and the tools of
agents are rendered from this list; who adds a line here has added it everywhere."""

from __future__ import annotations

from compaction.background.statistics import CompactionActivity
from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from compaction.llm.endpoints import ModelEndpoints
from compaction.params import (
    ActivityParams,
    BackfillParams,
    BoundaryParams,
    CompactParams,
    CoverageParams,
    EvaluateParams,
    ExecutePlanParams,
    FlushParams,
    JobParams,
    ListBoundariesParams,
    ListEndpointsParams,
    ListJobsParams,
    ListPlansParams,
    ListRunsParams,
    PlanIdParams,
    PlanParams,
    RedoParams,
    ResetEndpointParams,
    RunParams,
)
from compaction.plans.plan_store import CompactionPlans
from conversations.audit import AuditLog
from conversations.files.large_files import FileListing, LargeFileService
from conversations.files.uploads import UploadService
from conversations.params import (
    AppendMessagesParams,
    BeginUploadParams,
    ConfigureConversationParams,
    ConversationParams,
    FileParams,
    FindConversationParams,
    GetMessageParams,
    ListContextItemsParams,
    ListConversationsParams,
    ListFilesParams,
    ListMessagesParams,
    ListUploadsParams,
    OpenConversationParams,
    PutChunkParams,
    ReadFileLinesParams,
    ReadFileParams,
    StoreFileParams,
    UploadParams,
)
from conversations.store.conversations import ConversationStore
from integrity.checker import IntegrityChecker
from integrity.ledgers import Ledgers
from integrity.params import (
    ApproveRepairsParams,
    ArchiveParams,
    CheckParams,
    EraseParams,
    IntegrityStateParams,
    ListActsParams,
    ListQuarantinesParams,
    ListRepairsParams,
    ListReportsParams,
    PlanRepairsParams,
    PreviewErasureParams,
    QuarantineParams,
    ReleaseParams,
    RepairParams,
    ReportParams,
    RetentionParams,
    ScanParams,
    SetRetentionParams,
    StorageParams,
    ThawParams,
)
from integrity.repairs.applying import Repairs
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from integrity.retention.space_used import StorageReport
from integrity.retention.tiers import Retention
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.paging import Paging
from lcmsite.types import KeyScope
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from retrieval.delegation.grants import Grants
from retrieval.engine import RetrievalEngine
from retrieval.params import (
    AssembleParams,
    BrowseParams,
    CompareReceiptsParams,
    DescribeParams,
    DescribeRangeParams,
    ExpandParams,
    ExpandQueryParams,
    ExpandRangeParams,
    GrantParams,
    GrepParams,
    ImpactParams,
    LineageParams,
    LineageWindowParams,
    ListGrantsParams,
    ListReceiptsParams,
    RecallParams,
    ReceiptParams,
)

WRITE = KeyScope.WRITE
ADMIN = KeyScope.ADMIN
ALL = "conversations/"
ONE = ALL + "{conversation_id}/"

_CONVERSATIONS = (
    Operation(
        ConversationStore, "open_conversation", OpenConversationParams, "POST", ALL, "lcm_open",
        scope=WRITE, for_agents="lcm_open",
    ),
    Operation(
        ConversationStore, "list_conversations", ListConversationsParams, "GET", ALL, "lcm_list",
        paging=Paging("after_id", "conversation_id"),
    ),
    Operation(ConversationStore, "find_conversation", FindConversationParams, "GET", ALL + "find/", "lcm_find"),
    Operation(ConversationStore, "get_conversation", ConversationParams, "GET", ONE, "lcm_show"),
    Operation(
        ConversationStore, "configure_conversation", ConfigureConversationParams, "PUT", ONE + "overrides/",
        "lcm_configure", scope=WRITE,
    ),
    Operation(
        ConversationStore, "append_messages", AppendMessagesParams, "POST", ONE + "messages/", "lcm_append",
        scope=WRITE, status=201, for_agents="lcm_append",
    ),
    Operation(
        ConversationStore, "list_messages", ListMessagesParams, "GET", ONE + "messages/", "lcm_messages",
        paging=Paging("after_seq", "seq"),
    ),
    Operation(
        ConversationStore, "get_message", GetMessageParams, "GET", "messages/{message_id}/", "lcm_message",
        immutable=True,
    ),
    Operation(
        ConversationStore, "get_context_items", ListContextItemsParams, "GET", ONE + "context-items/", "lcm_items",
        paging=Paging("after_ordinal", "ordinal")
    ),
)  # fmt: skip

_COMPACTION = (
    Operation(
        CompactionEngine, "evaluate", EvaluateParams, "GET", ONE + "pressure/", "lcm_evaluate", for_agents="lcm_status"
    ),
    Operation(
        CompactionEngine, "compact", CompactParams, "POST", ONE + "compactions/", "lcm_compact",
        scope=WRITE, status=201, background="request", heavy=True,
    ),
    Operation(
        CompactionEngine, "redo", RedoParams, "POST", ONE + "redo/", "lcm_redo",
        scope=WRITE, status=201, background="request_redo", heavy=True,
    ),
    Operation(
        CompactionEngine, "backfill", BackfillParams, "POST", ONE + "backfill/", "lcm_backfill",
        scope=WRITE, status=202, everywhere="backfill/",
    ),
    Operation(
        CompactionEngine, "list_runs", ListRunsParams, "GET", ONE + "compactions/", "lcm_runs",
        paging=Paging("before_run", "run_id"),
        everywhere="compactions/",
    ),
    Operation(CompactionEngine, "get_job", JobParams, "GET", "jobs/{job_id}/", "lcm_job"),
    Operation(CompactionEngine, "get_run", RunParams, "GET", "compactions/{run_id}/", "lcm_run"),
)  # fmt: skip

_ACTIVITY = (
    Operation(CompactionActivity, "activity", ActivityParams, "GET", "activity/", "lcm_activity"),
    Operation(
        CompactionActivity,
        "list_jobs",
        ListJobsParams,
        "GET",
        ONE + "jobs/",
        "lcm_jobs",
        paging=Paging("before_id", "job_id"),
        everywhere="jobs/",
    ),
)

_PLANS = (
    Operation(
        CompactionPlans, "plan", PlanParams, "POST", ONE + "plans/", "lcm_plan", scope=WRITE, status=201, heavy=True
    ),
    Operation(
        CompactionPlans, "list_plans", ListPlansParams, "GET", ONE + "plans/", "lcm_plans",
        paging=Paging("before_plan", "plan_id"),
    ),
    Operation(CompactionPlans, "get_plan", PlanIdParams, "GET", "plans/{plan_id}/", "lcm_show_plan"),
    Operation(
        CompactionPlans, "execute_plan", ExecutePlanParams, "POST", "plans/{plan_id}/execution/", "lcm_execute_plan",
        scope=WRITE, status=201, background="request_execution", heavy=True,
    ),
)  # fmt: skip

_HOSTS = (
    Operation(
        HostCompaction, "flush", FlushParams, "POST", ONE + "flushes/", "lcm_flush",
        scope=WRITE, status=201, background="flush_in_background", heavy=True,
    ),
    Operation(
        HostCompaction, "record_boundary", BoundaryParams, "POST", ONE + "boundaries/", "lcm_boundary",
        scope=WRITE, status=201,
    ),
    Operation(
        HostCompaction, "list_boundaries", ListBoundariesParams, "GET", ONE + "boundaries/", "lcm_boundaries",
        paging=Paging("before_reference", "host_reference"),
    ),
    Operation(
        HostCompaction, "verify_coverage", CoverageParams, "POST", ONE + "coverage/", "lcm_coverage", heavy=True
    ),
)  # fmt: skip

_MODELS = (
    Operation(
        ModelEndpoints, "list_endpoints", ListEndpointsParams, "GET", "models/", "lcm_models",
        scope=ADMIN, of_the_site=True,
    ),
    Operation(
        ModelEndpoints, "reset_endpoint", ResetEndpointParams, "POST", "models/{name}/reset/", "lcm_reset_model",
        scope=ADMIN, of_the_site=True,
    ),
)  # fmt: skip

_FILES = (
    Operation(
        LargeFileService, "store", StoreFileParams, "POST", ONE + "files/", "lcm_store_file", scope=WRITE, status=201
    ),
    Operation(LargeFileService, "get", FileParams, "GET", "files/{file_id}/", "lcm_file", immutable=True),
    Operation(
        LargeFileService, "read", ReadFileParams, "GET", "files/{file_id}/content/", "lcm_read_file", immutable=True
    ),
    Operation(
        LargeFileService, "read_lines", ReadFileLinesParams, "GET", "files/{file_id}/lines/", "lcm_read_lines",
        for_agents="lcm_read_file",
    ),
    Operation(
        FileListing, "list_files", ListFilesParams, "GET", ONE + "files/", "lcm_files",
        paging=Paging("before", "file_id"), everywhere="files/",
    ),
)  # fmt: skip

_UPLOADS = (
    Operation(
        UploadService, "begin", BeginUploadParams, "POST", ONE + "uploads/", "lcm_begin_upload", scope=WRITE, status=201
    ),
    Operation(
        UploadService, "put_chunk", PutChunkParams, "PUT", "uploads/{upload_id}/chunks/{offset}/", "lcm_put_chunk",
        scope=WRITE,
    ),
    Operation(
        UploadService, "list_uploads", ListUploadsParams, "GET", ONE + "uploads/", "lcm_uploads",
        paging=Paging("before_upload", "upload_id"),
    ),
    Operation(UploadService, "get_upload", UploadParams, "GET", "uploads/{upload_id}/", "lcm_show_upload"),
    Operation(
        UploadService, "finish", UploadParams, "POST", "uploads/{upload_id}/finish/", "lcm_finish_upload",
        scope=WRITE, status=201,
    ),
    Operation(
        UploadService, "abort", UploadParams, "POST", "uploads/{upload_id}/abort/", "lcm_abort_upload", scope=WRITE
    ),
)  # fmt: skip

_RETRIEVAL = (
    Operation(
        RetrievalEngine, "grep", GrepParams, "GET", ONE + "matches/", "lcm_grep",
        everywhere="matches/", for_agents="lcm_grep", heavy=True,
    ),
    Operation(
        RetrievalEngine, "describe", DescribeParams, "GET", "items/{id}/", "lcm_describe", for_agents="lcm_describe",
        immutable=True,
    ),
    Operation(
        RetrievalEngine, "describe_range", DescribeRangeParams, "GET", ONE + "range/", "lcm_describe_range",
        for_agents="lcm_describe_range", heavy=True,
    ),
    Operation(RetrievalEngine, "impact", ImpactParams, "GET", "items/{id}/impact/", "lcm_impact", heavy=True),
    Operation(
        RetrievalEngine, "expand", ExpandParams, "GET", "summaries/{summary_id}/expansion/", "lcm_expand",
        for_agents="lcm_expand", heavy=True,
    ),
    Operation(
        RetrievalEngine, "expand_range", ExpandRangeParams, "GET", ONE + "expansion/", "lcm_expand_range",
        for_agents="lcm_expand_range", heavy=True,
    ),
    Operation(
        Delegation, "expand_query", ExpandQueryParams, "POST", "expand-queries/", "lcm_expand_query",
        for_agents="lcm_expand_query", heavy=True,
    ),
    Operation(
        Grants, "list_grants", ListGrantsParams, "GET", "grants/", "lcm_grants",
        paging=Paging("before_grant", "grant_id"),
    ),
    Operation(Grants, "get_grant", GrantParams, "GET", "grants/{grant_id}/", "lcm_grant"),
    Operation(
        Grants, "revoke_grant", GrantParams, "POST", "grants/{grant_id}/revocation/", "lcm_revoke_grant", scope=WRITE
    ),
    Operation(
        RetrievalEngine, "browse", BrowseParams, "GET", ALL + "overviews/", "lcm_browse",
        paging=Paging("page", "next_page", is_of_record=True),
    ),
    Operation(RetrievalEngine, "lineage", LineageParams, "GET", ONE + "lineage/", "lcm_lineage", heavy=True),
    Operation(
        RetrievalEngine, "lineage_window", LineageWindowParams, "GET", ONE + "lineage/window/", "lcm_lineage_window",
        heavy=True,
    ),
    Operation(
        ContextAssembler, "assemble", AssembleParams, "GET", ONE + "context/", "lcm_assemble",
        for_agents="lcm_assemble", heavy_with="query",
    ),
    Operation(ContextAssembler, "recall", RecallParams, "GET", ONE + "recall/", "lcm_recall"),
    Operation(
        ContextAssembler, "list_receipts", ListReceiptsParams, "GET", ONE + "receipts/", "lcm_receipts",
        paging=Paging("before_receipt", "receipt_id")
    ),
    Operation(
        ContextAssembler, "get_receipt", ReceiptParams, "GET", "receipts/{receipt_id}/", "lcm_receipt", immutable=True
    ),
    Operation(
        ContextAssembler, "compare_receipts", CompareReceiptsParams, "GET", "receipts/{receipt_id}/difference/",
        "lcm_compare_receipts",
    ),
)  # fmt: skip

_INTEGRITY = (
    Operation(
        IntegrityChecker, "run", CheckParams, "POST", ONE + "integrity-reports/", "lcm_check",
        everywhere="integrity-reports/", background="request", heavy=True,
    ),
    Operation(IntegrityChecker, "get_state", IntegrityStateParams, "GET", "integrity/", "lcm_integrity"),
    Operation(IntegrityChecker, "get_scan", ScanParams, "GET", "scans/{scan_id}/", "lcm_scan"),
    Operation(
        IntegrityChecker, "list_reports", ListReportsParams, "GET", "integrity-reports/", "lcm_reports",
        paging=Paging("before_report", "report_id"),
    ),
    Operation(
        IntegrityChecker, "get_report", ReportParams, "GET", "integrity-reports/{report_id}/", "lcm_report",
        paging=Paging("after_id", "next_after_id", is_of_record=True),
    ),
)  # fmt: skip

_REPAIRS = (
    Operation(
        IntegrityChecker, "plan_repairs", PlanRepairsParams, "POST", "integrity-reports/{report_id}/repair-plans/",
        "lcm_plan_repairs", scope=WRITE, status=201, heavy=True,
    ),
    Operation(
        Repairs, "list_plans", ListRepairsParams, "GET", "integrity-reports/{report_id}/repair-plans/",
        "lcm_repair_plans", paging=Paging("before_plan", "repair_id"), everywhere="repair-plans/",
    ),
    Operation(Repairs, "get_plan", RepairParams, "GET", "repair-plans/{repair_id}/", "lcm_repairs"),
    Operation(
        Repairs, "approve_steps", ApproveRepairsParams, "POST", "repair-plans/{repair_id}/approval/",
        "lcm_approve_repairs", scope=ADMIN,
    ),
    Operation(
        Repairs, "apply_plan", RepairParams, "POST", "repair-plans/{repair_id}/application/", "lcm_apply_repairs",
        scope=ADMIN, heavy=True,
    ),
    Operation(
        Repairs, "undo_plan", RepairParams, "POST", "repair-plans/{repair_id}/undoing/", "lcm_undo_repairs",
        scope=ADMIN, heavy=True,
    ),
    Operation(
        Quarantines, "list_quarantines", ListQuarantinesParams, "GET", "quarantines/", "lcm_quarantines",
        paging=Paging("before_id", "quarantine_id"),
    ),
    Operation(
        Quarantines, "quarantine", QuarantineParams, "POST", "items/{id}/quarantine/", "lcm_quarantine",
        scope=ADMIN, status=201,
    ),
    Operation(
        Quarantines, "release", ReleaseParams, "POST", "quarantines/{quarantine_id}/release/", "lcm_release",
        scope=ADMIN,
    ),
)  # fmt: skip

_RETENTION = (
    Operation(Retention, "archive", ArchiveParams, "POST", ONE + "archive/", "lcm_archive", scope=ADMIN, heavy=True),
    Operation(Retention, "thaw", ThawParams, "POST", ONE + "thaw/", "lcm_thaw", scope=ADMIN, heavy=True),
    Operation(Retention, "get_retention", RetentionParams, "GET", "retention/", "lcm_retention"),
    Operation(Retention, "set_retention", SetRetentionParams, "PUT", "retention/", "lcm_set_retention", scope=ADMIN),
    Operation(StorageReport, "storage", StorageParams, "GET", "storage/", "lcm_storage", heavy=True),
)

_ERASURE = (
    Operation(
        Erasures, "preview_erasure", PreviewErasureParams, "POST", ONE + "erasures/", "lcm_preview_erasure",
        scope=ADMIN, status=201, heavy=True,
    ),
    Operation(
        Erasures, "erase", EraseParams, "POST", "erasures/{erasure_id}/execution/", "lcm_erase", scope=ADMIN,
        heavy=True,
    ),
)  # fmt: skip

_AUDIT = (
    Operation(
        AuditLog,
        "list_acts",
        ListActsParams,
        "GET",
        "audit-log/",
        "lcm_audit",
        paging=Paging("before_id", "audit_id"),
        scope=ADMIN,
    ),
)

_REBUILDING = (
    Operation(Ledgers, "rebuild", ConversationParams, "POST", ONE + "rebuild/", "lcm_rebuild", scope=ADMIN, heavy=True),
)

CATALOGUE: tuple[Operation, ...] = (
    *_CONVERSATIONS,
    *_COMPACTION,
    *_ACTIVITY,
    *_PLANS,
    *_HOSTS,
    *_MODELS,
    *_FILES,
    *_UPLOADS,
    *_RETRIEVAL,
    *_INTEGRITY,
    *_REPAIRS,
    *_RETENTION,
    *_ERASURE,
    *_AUDIT,
    *_REBUILDING,
)
