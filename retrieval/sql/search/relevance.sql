-- Searches by words, best match first.

-- name: best_rows
-- The best rows of one table, ranked without their neighbours. Candidates are the rows that hold an anchor (see
-- compiled_query.py), and the rarity of a lexeme is counted among them. MATERIALIZED: lexemes are counted once, not for
-- each row. LIMIT: a large tsvector is fetched and decompressed once, not by each function that takes it. OFFSET 0:
-- ranks are computed once.
WITH {newest} hits AS MATERIALIZED (
    SELECT id, conversation_id, seq, token_count, order_place, place, author, role, created_at, words, {shares}
    FROM (
        SELECT *, {words} AS words, {ranks}
        FROM (
            SELECT {id} AS id, conversation_id, {seq} AS seq, {tokens} AS token_count, {order_place} AS order_place,
                   ctid AS place, {author} AS author, {role} AS role, {created_at} AS created_at, {vector} AS vector
            FROM {table}
            WHERE {where} AND {matching}
            LIMIT %(most_rows)s
        ) AS found
        OFFSET 0
    ) AS holding
), rarities AS MATERIALIZED (
    SELECT looked_at, {rarities} FROM (SELECT count(*) AS looked_at, {counts} FROM hits) AS counts
), best AS (
    SELECT hits.*
    FROM hits, rarities
    ORDER BY ({worth}) / {length_cost} DESC, id DESC
    LIMIT {most}
)
SELECT {kind}, id::text, {one_place}, ARRAY[{share_columns}]::float8[], token_count, {answered_in}, order_place,
       author, role, created_at, {of_lcm}, words, CASE WHEN id = (SELECT id FROM best LIMIT 1) THEN (
           SELECT ARRAY[looked_at, {rarity_columns}] FROM rarities
       ) END
FROM best

-- name: words
-- The positions of the query's words in a text: those that `setweight` has marked.
CASE WHEN {where} THEN ts_filter(vector, '{{a}}')::text END

-- name: of_lcm
-- Whether a message is a call of one of LCM's own tools, or the result of one. A result mostly names only its call,
-- which is just before it.
EXISTS (
    SELECT FROM message_parts part
    WHERE part.message_id = {id} AND part.tool_call_id IS NOT NULL AND coalesce(part.tool_name, (
        SELECT call.tool_name FROM messages earlier JOIN message_parts call USING (message_id)
        WHERE earlier.conversation_id = {of}.conversation_id AND earlier.seq BETWEEN {of}.seq - 16 AND {of}.seq - 1
          AND call.tool_call_id = part.tool_call_id AND call.tool_name IS NOT NULL
        ORDER BY earlier.seq DESC LIMIT 1
    )) ~ '(^|[^a-z])lcm_[a-z]'
    OFFSET 0
)

-- name: newest_of_matching
-- The newest of the messages that meet the filters. Materialized, so that the word index finds them: to get the order,
-- the planner would walk through all messages.
newest AS MATERIALIZED (
    SELECT row FROM (
        SELECT row, order_place
        FROM (
            SELECT ctid AS row, {order_place} AS order_place, message_id, conversation_id, seq
            FROM messages WHERE {where} AND {words}
            ORDER BY -{order_place} LIMIT %(most_promising)s
        ) AS messages
        WHERE {costly}
    ) AS matching
    ORDER BY order_place DESC LIMIT %(most_candidates)s
),

-- name: is_newest
-- A condition: the row is one of `newest`.
ctid = ANY(ARRAY(SELECT row FROM newest))

-- name: matches_words
-- Whether a row holds the query's words, written as a CASE so that the planner cannot use the text index for it: the
-- rows are found by another index.
CASE WHEN {vector} @@ %(query)s::tsquery THEN true ELSE false END

-- name: lexeme_rank
-- The rank of one lexeme. It saturates: a message with a lexeme twice has 1.25 times the rank of one with it once.
-- ts_rank of several forms is their mean, hence the factor.
ts_rank('{{1,1,1,1}}', vector, (%(terms)s::tsquery[])[{n}]) * (%(forms)s::real[])[{n}] AS r{n}

-- name: row_rank
-- The rank of words that follow each other: as much as that of one word that occurs once. It is a real number like the
-- other ranks, as numeric is slow to count and to sort.
CASE WHEN vector @@ (%(terms)s::tsquery[])[{n}] THEN 0.6::real ELSE 0::real END AS r{n}

-- name: answered_in
-- For a message with a question near its end, how many messages later the answer is: the first of the next messages
-- without a tool call or result; 0 if there is none near. A caption or a remark may follow the question. Long texts are
-- not examined, because they would have to be fetched and decompressed.
(
    SELECT coalesce((
        SELECT answer.seq - best.seq
        FROM messages AS answer
        WHERE answer.conversation_id = best.conversation_id AND answer.seq > best.seq AND answer.seq <= best.seq + 12
          AND answer.role <> 'tool' AND NOT EXISTS (
              SELECT FROM message_parts p WHERE p.message_id = answer.message_id AND p.part_type = 'tool'
          )
        ORDER BY answer.seq LIMIT 1
    ), 0)
    FROM messages
    WHERE ctid = best.place AND octet_length(content) < 2000 AND right(content, 100) ~ '[?？؟](\s|$)'
)

-- name: answered_in_before_a_hit
-- The same, but only for a hit whose next message is a hit, too.
CASE WHEN (conversation_id, seq + 1) IN (SELECT conversation_id, seq FROM best) THEN {answered_in} END

-- name: neighbours
-- The messages at the given seqs of conversations, except those whose texts are erased or cold.
SELECT message_id::text, {one_place}, {order_place}, {created_at}, author, role::text, token_count, {of_lcm}, {tells_when},
       {instructs}
FROM unnest(%(conversations)s::bigint[], %(seqs)s::bigint[]) AS near(conversation_id, seq)
     JOIN messages USING (conversation_id, seq)
WHERE {where} AND {has_text}

-- name: tells_when
-- Whether a message states a time, judged by words for dates and times. Long texts hold some by chance and do not
-- count.
(octet_length(content) < 2000 AND content_tsv @@ '
    ago | yesterday | today | tonight | tomorrow | last | next | night | morn | week | weekend | month | year
    | monday | tuesday | wednesday | thursday | friday | saturday | sunday
    | januari | februari | march | april | june | juli | august | septemb | octob | novemb | decemb
    '::tsquery) IS TRUE

-- name: instructs
-- Whether a user states a standing instruction or a preference, judged by words. Long texts do not count, as above.
(role = 'user' AND octet_length(content) < 2000 AND content_tsv @@ 'alway | never | prefer'::tsquery) IS TRUE
