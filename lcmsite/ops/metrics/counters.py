"""Counters: MCP calls, gateway exchanges, requests refused or closed by a server."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

CALLS = Counter("lcm_mcp_calls_total", "Calls of agents, by tool and outcome.", ["tool", "outcome"])
CALL_SECONDS = Histogram("lcm_mcp_call_seconds", "How long calls of agents took.", ["tool"])
CLIENT_LIMITS = Counter(
    "lcm_client_limits_total",
    "Requests and connections that the server ended or refused to protect itself, by reason.",
    ["reason"],
)
EXCHANGES = Counter("lcm_gateway_exchanges_total", "Requests through the gateway, by outcome.", ["outcome"])

# Create all series at the start, with 0: Prometheus computes no rate for the first event of a new series.
for _reason in (
    "header_timeout", "headers_too_large", "body_timeout", "response_timeout", "connections", "busy", "streams",
):  # fmt: skip
    CLIENT_LIMITS.labels(_reason)
for _outcome in ("recorded", "spooled", "replayed", "rejected", "lost", "passed"):
    EXCHANGES.labels(_outcome)
