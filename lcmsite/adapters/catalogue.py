"""Everything that LCM does for a caller, one line an operation. REST, its schema, the command line and the tools of
agents are rendered from this list; who adds a line here has added it everywhere."""

from __future__ import annotations

from compaction.endpoints import ModelEndpoints
from compaction.engine import CompactionEngine
from compaction.hosts import HostCompaction
from compaction.params import (
    BackfillParams,
    BoundaryParams,
    CompactParams,
    CoverageParams,
    EvaluateParams,
    FlushParams,
    JobParams,
    ListBoundariesParams,
    ListEndpointsParams,
    ListPlansParams,
    ListRunsParams,
    PlanIdParams,
    PlanParams,
    RedoParams,
    ResetEndpointParams,
    RunParams,
)
from compaction.plans import CompactionPlans
from conversations.large_files import LargeFileService
from conversations.params import (
    AppendMessagesParams,
    ConfigureConversationParams,
    ConversationParams,
    FileParams,
    FindConversationParams,
    ListConversationsParams,
    ListMessagesParams,
    MessageParams,
    OpenConversationParams,
    ReadFileParams,
    StoreFileParams,
)
from conversations.store import ConversationStore
from integrity.checker import IntegrityChecker
from integrity.params import CheckParams
from lcmsite.adapters.operation import Operation
from lcmsite.types import KeyScope
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from retrieval.delegation.grants import Grants
from retrieval.engine import RetrievalEngine
from retrieval.params import (
    AssembleParams,
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
    ListGrantsParams,
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
    Operation(ConversationStore, "list_conversations", ListConversationsParams, "GET", ALL, "lcm_list"),
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
    Operation(ConversationStore, "list_messages", ListMessagesParams, "GET", ONE + "messages/", "lcm_messages"),
    Operation(ConversationStore, "get_message", MessageParams, "GET", "messages/{message_id}/", "lcm_message"),
    Operation(ConversationStore, "get_context_items", ConversationParams, "GET", ONE + "context-items/", "lcm_items"),
)  # fmt: skip

_COMPACTION = (
    Operation(
        CompactionEngine, "evaluate", EvaluateParams, "GET", ONE + "pressure/", "lcm_evaluate", for_agents="lcm_status"
    ),
    Operation(
        CompactionEngine, "compact", CompactParams, "POST", ONE + "compactions/", "lcm_compact",
        scope=WRITE, status=201, background="request",
    ),
    Operation(
        CompactionEngine, "redo", RedoParams, "POST", ONE + "redo/", "lcm_redo",
        scope=WRITE, status=201, background="request_redo",
    ),
    Operation(
        CompactionEngine, "backfill", BackfillParams, "POST", ONE + "backfill/", "lcm_backfill",
        scope=WRITE, status=202, everywhere="backfill/",
    ),
    Operation(CompactionEngine, "list_runs", ListRunsParams, "GET", ONE + "compactions/", "lcm_runs"),
    Operation(CompactionEngine, "get_job", JobParams, "GET", "jobs/{job_id}/", "lcm_job"),
    Operation(CompactionEngine, "get_run", RunParams, "GET", "compactions/{run_id}/", "lcm_run"),
)  # fmt: skip

_PLANS = (
    Operation(CompactionPlans, "plan", PlanParams, "POST", ONE + "plans/", "lcm_plan", scope=WRITE, status=201),
    Operation(CompactionPlans, "list_plans", ListPlansParams, "GET", ONE + "plans/", "lcm_plans"),
    Operation(CompactionPlans, "get_plan", PlanIdParams, "GET", "plans/{plan_id}/", "lcm_show_plan"),
    Operation(
        CompactionPlans, "execute_plan", PlanIdParams, "POST", "plans/{plan_id}/execution/", "lcm_execute_plan",
        scope=WRITE, status=201,
    ),
)  # fmt: skip

_HOSTS = (
    Operation(
        HostCompaction, "flush", FlushParams, "POST", ONE + "flushes/", "lcm_flush",
        scope=WRITE, status=201, background="flush_in_background",
    ),
    Operation(
        HostCompaction, "record_boundary", BoundaryParams, "POST", ONE + "boundaries/", "lcm_boundary",
        scope=WRITE, status=201,
    ),
    Operation(HostCompaction, "list_boundaries", ListBoundariesParams, "GET", ONE + "boundaries/", "lcm_boundaries"),
    Operation(HostCompaction, "verify_coverage", CoverageParams, "POST", ONE + "coverage/", "lcm_coverage"),
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
    Operation(LargeFileService, "get", FileParams, "GET", "files/{file_id}/", "lcm_file"),
    Operation(LargeFileService, "read", ReadFileParams, "GET", "files/{file_id}/content/", "lcm_read_file"),
)

_RETRIEVAL = (
    Operation(
        RetrievalEngine, "grep", GrepParams, "GET", ONE + "matches/", "lcm_grep",
        everywhere="matches/", for_agents="lcm_grep",
    ),
    Operation(
        RetrievalEngine, "describe", DescribeParams, "GET", "items/{id}/", "lcm_describe", for_agents="lcm_describe"
    ),
    Operation(
        RetrievalEngine, "describe_range", DescribeRangeParams, "GET", ONE + "range/", "lcm_describe_range",
        for_agents="lcm_describe_range",
    ),
    Operation(RetrievalEngine, "impact", ImpactParams, "GET", "items/{id}/impact/", "lcm_impact"),
    Operation(
        RetrievalEngine, "expand", ExpandParams, "GET", "summaries/{summary_id}/expansion/", "lcm_expand",
        for_agents="lcm_expand",
    ),
    Operation(
        RetrievalEngine, "expand_range", ExpandRangeParams, "GET", ONE + "expansion/", "lcm_expand_range",
        for_agents="lcm_expand_range",
    ),
    Operation(
        Delegation, "expand_query", ExpandQueryParams, "POST", "expand-queries/", "lcm_expand_query",
        for_agents="lcm_expand_query",
    ),
    Operation(Grants, "list_grants", ListGrantsParams, "GET", "grants/", "lcm_grants"),
    Operation(Grants, "get_grant", GrantParams, "GET", "grants/{grant_id}/", "lcm_grant"),
    Operation(
        Grants, "revoke_grant", GrantParams, "POST", "grants/{grant_id}/revocation/", "lcm_revoke_grant", scope=WRITE
    ),
    Operation(RetrievalEngine, "lineage", LineageParams, "GET", ONE + "lineage/", "lcm_lineage"),
    Operation(
        ContextAssembler, "assemble", AssembleParams, "GET", ONE + "context/", "lcm_assemble", for_agents="lcm_assemble"
    ),
    Operation(ContextAssembler, "recall", RecallParams, "GET", ONE + "recall/", "lcm_recall"),
    Operation(ContextAssembler, "get_receipt", ReceiptParams, "GET", "receipts/{receipt_id}/", "lcm_receipt"),
    Operation(
        ContextAssembler, "compare_receipts", CompareReceiptsParams, "GET", "receipts/{receipt_id}/difference/",
        "lcm_compare_receipts",
    ),
)  # fmt: skip

_INTEGRITY = (
    Operation(
        IntegrityChecker, "run", CheckParams, "POST", ONE + "integrity-reports/", "lcm_check",
        everywhere="integrity-reports/",
    ),
)  # fmt: skip

CATALOGUE: tuple[Operation, ...] = (
    *_CONVERSATIONS,
    *_COMPACTION,
    *_PLANS,
    *_HOSTS,
    *_MODELS,
    *_FILES,
    *_RETRIEVAL,
    *_INTEGRITY,
)
