-- name: keep
-- Store a receipt and remove the oldest ones. A receipt that is already stored becomes the newest again.
WITH kept AS (
    INSERT INTO assembly_receipts (receipt_id, conversation_id, figures, lines)
    VALUES (%(receipt)s, %(conversation)s, %(figures)s::jsonb, %(lines)s::jsonb)
    ON CONFLICT (receipt_id) DO UPDATE SET created_at = excluded.created_at
)
DELETE FROM assembly_receipts WHERE receipt_id = ANY(ARRAY(
    SELECT receipt_id FROM assembly_receipts
    WHERE conversation_id = %(conversation)s AND receipt_id <> %(receipt)s
    ORDER BY created_at DESC, receipt_id DESC OFFSET %(others)s LIMIT %(at_once)s
)) RETURNING receipt_id
