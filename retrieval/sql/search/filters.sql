-- Conditions and columns of which the statements of a search are made.

-- name: has_part
-- A message with a part of these types. Without the offset, PostgreSQL may join all parts that there are first.
EXISTS (
    SELECT FROM message_parts part
    WHERE part.message_id = messages.message_id AND part.part_type = ANY(%(part_types)s::text[]::message_part_type[])
    OFFSET 0
)

-- name: of_tool
-- A message that calls a tool, or answers a call of it. A result mostly names the call, not the tool: the call stands
-- just before, at most behind other calls of the same turn and their results.
EXISTS (
    SELECT FROM message_parts part
    WHERE part.message_id = messages.message_id AND CASE
        WHEN part.tool_name IS NOT NULL THEN part.tool_name = ANY(%(tool_names)s::text[])
        ELSE part.tool_call_id IS NOT NULL AND EXISTS (
            SELECT FROM messages earlier JOIN message_parts call ON call.message_id = earlier.message_id
            WHERE earlier.conversation_id = messages.conversation_id
              AND earlier.seq BETWEEN messages.seq - 16 AND messages.seq - 1
              AND call.tool_call_id = part.tool_call_id AND call.tool_name = ANY(%(tool_names)s::text[])
        )
    END
    OFFSET 0
)

-- name: held_below
-- A message that a summary, or one of those that it was made from, was made from.
EXISTS (
    SELECT FROM summary_messages held
    WHERE held.message_id = messages.message_id AND held.summary_id = ANY(%(holding)s::text[])
)

-- name: not_superseded
-- Of a summary that was made again, the newer text is found.
NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id)

-- name: not_superseded_then
-- The same at an earlier moment.
summaries.created_at <= %(at)s AND NOT EXISTS (
    SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id AND later.created_at <= %(at)s
)

-- name: last_of_summary
-- The last message of a summary tells where the summary stands among messages.
(
    SELECT last.{column} FROM messages last
    WHERE last.conversation_id = summaries.conversation_id AND last.seq = summaries.last_seq
)

-- name: last_before_file
-- A file stands behind the last message recorded before it, so that nothing that comes later moves it.
coalesce((
    SELECT last.{column} FROM messages last
    WHERE last.conversation_id = large_files.conversation_id AND last.recorded_at <= large_files.created_at
    ORDER BY last.seq DESC LIMIT 1
), 0)

-- name: on_active_path
-- What is on the active path of the one conversation; a summary is if the last message that it stands for is.
NOT %(off_path)s::int8multirange @> {seq}

-- name: on_its_active_path
-- The same in several conversations.
NOT EXISTS (
    SELECT FROM conversations own WHERE own.conversation_id = {table}.conversation_id AND own.inactive @> {seq} OFFSET 0
)
