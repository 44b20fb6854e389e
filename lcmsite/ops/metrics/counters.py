"""Counters of the site: calls of agents, and what was refused or ended. django-prometheus counts the rest."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

CALLS = Counter("lcm_mcp_calls_total", "Calls of agents, by tool and by how they ended.", ["tool", "outcome"])
CALL_SECONDS = Histogram("lcm_mcp_call_seconds", "How long calls of agents took.", ["tool"])
TOO_MANY_AT_ONCE = Counter(
    "lcm_too_many_at_once_total", "Requests refused because too much ran at once: heavy or other.", ["kind"]
)
CANCELLED = Counter("lcm_cancelled_total", "Heavy operations cancelled because their client disconnected.")
RATE_LIMITED = Counter("lcm_rate_limited_total", "Requests refused because their key had made too many.")
CLIENT_LIMITS = Counter(
    "lcm_client_limits_total",
    "Requests and connections that the server ended or refused to protect itself, by reason.",
    ["reason"],
)

# Shown from the start, as no rate can be computed for a series that begins with its first event.
for _kind in ("heavy", "other"):
    TOO_MANY_AT_ONCE.labels(_kind)
for _reason in (
    "header_timeout",
    "headers_too_large",
    "body_timeout",
    "response_timeout",
    "connections",
    "busy",
    "streams",
):
    CLIENT_LIMITS.labels(_reason)
