"""Which messages have to do with a tool: those that call it, and those that answer such a call."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.sql import rows

# A result mostly names the call that it answers, not the tool: the call stands just before, at most behind other calls
# of the same turn and their results.
_CALLS_BEFORE = 16
# The messages of tools that were called so rarely are found by their calls. Of others, some are soon found among those
# that have what else is asked for.
MOST_CALLS = 300

OF_TOOL = f"""EXISTS (
    SELECT FROM message_parts part
    WHERE part.message_id = messages.message_id AND CASE
        WHEN part.tool_name IS NOT NULL THEN part.tool_name = ANY(%(tool_names)s::text[])
        ELSE part.tool_call_id IS NOT NULL AND EXISTS (
            SELECT FROM messages earlier JOIN message_parts call ON call.message_id = earlier.message_id
            WHERE earlier.conversation_id = messages.conversation_id
              AND earlier.seq BETWEEN messages.seq - {_CALLS_BEFORE} AND messages.seq - 1
              AND call.tool_call_id = part.tool_call_id AND call.tool_name = ANY(%(tool_names)s::text[])
        )
    END
    OFFSET 0
)"""
OF_RARE_TOOL = "message_id = ANY(%(of_tools)s::bigint[])"

# Messages are recorded in the order of their numbers, so that those of a conversation lie between its first and last.
# Rows are compared as wholes because no other index serves that, and in its order, so that no more of it is read than
# the limit says; and each further step is a look-up by index, whatever the planner expects of the last.
_OF_RARE = f"""
    WITH ends AS MATERIALIZED (
        SELECT coalesce((
            SELECT message_id FROM messages WHERE conversation_id = %(conversation_id)s::bigint
            ORDER BY seq LIMIT 1
        ), 0) AS first, coalesce((
            SELECT message_id FROM messages WHERE conversation_id = %(conversation_id)s::bigint
            ORDER BY seq DESC LIMIT 1
        ), {2**63 - 1}) AS last
    ), calls AS MATERIALIZED (
        SELECT found.message_id, found.tool_call_id
        FROM ends, unnest(%(tool_names)s::text[]) AS asked(name), LATERAL (
            SELECT message_id, tool_call_id FROM message_parts
            WHERE tool_name IS NOT NULL AND (tool_name, message_id) >= (asked.name, ends.first)
              AND (tool_name, message_id) <= (asked.name, ends.last)
            ORDER BY tool_name, message_id LIMIT %(most)s
        ) AS found
        LIMIT %(most)s
    ), few AS MATERIALIZED (
        SELECT calls.* FROM calls WHERE (SELECT count(*) FROM calls) < %(most)s
    )
    SELECT (SELECT count(*) FROM calls), array(
        SELECT message_id FROM few
        UNION
        SELECT answer.message_id
        FROM few, LATERAL (
            SELECT conversation_id, seq FROM messages WHERE message_id = few.message_id OFFSET 0
        ) AS call, LATERAL (
            SELECT message_id FROM messages
            WHERE conversation_id = call.conversation_id
              AND seq BETWEEN call.seq + 1 AND call.seq + {_CALLS_BEFORE}
            OFFSET 0
        ) AS later, LATERAL (
            SELECT message_id FROM message_parts
            WHERE message_id = later.message_id AND tool_name IS NULL AND tool_call_id = few.tool_call_id
            OFFSET 0
        ) AS answer
    )
"""


def of_rare_tools(tool_names: Sequence[str], conversation_id: int | None) -> tuple[int, ...] | None:
    """All messages that have to do with these tools; None if they were called too often.

    Of other conversations than the one that is named there may be some among them.
    """
    values = {"tool_names": list(tool_names), "conversation_id": conversation_id, "most": MOST_CALLS}
    [(calls, found)] = rows(_OF_RARE, values)
    return tuple(found) if calls < MOST_CALLS else None
