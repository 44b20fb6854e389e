-- Conditions and columns that the statements of a search are made of.

-- name: has_part
-- A message with a part of these types. Without OFFSET 0, PostgreSQL may first join the parts of all messages.
EXISTS (
    SELECT FROM message_parts part
    WHERE part.message_id = messages.message_id AND part.part_type = ANY(%(part_types)s::text[]::message_part_type[])
    OFFSET 0
)

-- name: of_tool
-- A message that calls a tool, or has the result of such a call. A result mostly has only the id of the call, not the
-- name of the tool. The call is just before it: only other calls of the same turn and their results may be in between.
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
-- A message below a summary: a source of it, or of a summary below it.
EXISTS (
    SELECT FROM summary_messages held
    WHERE held.message_id = messages.message_id AND held.summary_id = ANY(%(holding)s::text[])
)

-- name: not_superseded
-- A summary that no newer one supersedes.
NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id)

-- name: not_superseded_then
-- The same as of an earlier moment.
summaries.created_at <= %(at)s AND NOT EXISTS (
    SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id AND later.created_at <= %(at)s
)

-- name: last_of_summary
-- A summary is sorted among messages at the position of its last message.
(
    SELECT last.{column} FROM messages last
    WHERE last.conversation_id = summaries.conversation_id AND last.seq = summaries.last_seq
)

-- name: last_before_file
-- A file is sorted at the position of the last message recorded before it, so that later messages do not move it.
coalesce((
    SELECT last.{column} FROM messages last
    WHERE last.conversation_id = large_files.conversation_id AND last.recorded_at <= large_files.created_at
    ORDER BY last.seq DESC LIMIT 1
), 0)

-- name: on_active_path
-- A row on the active path of the searched conversation; a summary is on it if its last message is.
NOT %(off_path)s::int8multirange @> {seq}

-- name: on_its_active_path
-- The same for several conversations.
NOT EXISTS (
    SELECT FROM conversations own WHERE own.conversation_id = {table}.conversation_id AND own.inactive @> {seq} OFFSET 0
)
