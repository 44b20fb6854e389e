"""What the faces count: requests by operation, calls of agents by tool, waits for the database, and refusals."""

from __future__ import annotations

from conversations.metering import Meter

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

REQUESTS = Meter(
    "lcm_http_requests_total",
    "Requests answered, by the operation of the catalogue, or the page, and by status.",
    labels=("operation", "status"),
)
REQUEST_SECONDS = Meter(
    "lcm_http_request_seconds", "How long requests took, until the answer began.", ("operation",), _SECONDS
)
CALLS = Meter("lcm_mcp_calls_total", "Calls of agents, by tool and by how they ended.", labels=("tool", "outcome"))
CALL_SECONDS = Meter("lcm_mcp_call_seconds", "How long calls of agents took.", ("tool",), _SECONDS)
TOO_MANY_AT_ONCE = Meter(
    "lcm_too_many_at_once_total",
    "Requests refused because too much ran at once; kind: heavy or other.",
    labels=("kind",),
    known=(("heavy",), ("other",)),
)
CANCELLED = Meter("lcm_cancelled_total", "Heavy operations cancelled because their client disconnected.")
RATE_LIMITED = Meter("lcm_rate_limited_total", "Requests refused because their key had made too many.")
POOL_WAIT = Meter("lcm_pool_wait_seconds", "How long a process waited for a database connection.", (), _SECONDS)
POOL_EMPTY = Meter("lcm_pool_timeouts_total", "How often it got none in time.")
CLIENT_LIMITS = Meter(
    "lcm_client_limits_total",
    "Requests and connections that the server ended or refused to protect itself, by reason.",
    labels=("reason",),
    known=tuple(
        (reason,)
        for reason in (
            "header_timeout",
            "headers_too_large",
            "body_timeout",
            "response_timeout",
            "connections",
            "busy",
            "streams",
        )
    ),
)
