-- Triggers that remove the vectors of messages that are erased, moved to cold storage, quarantined or rewritten by a
-- repair. Texts that come back or are rewritten are embedded again by the next worker. The file can be run repeatedly.

CREATE OR REPLACE FUNCTION lcm_forget_vectors(p_messages bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  of_embedder bigint;
  vectors regclass;
BEGIN
  -- Whoever stores vectors of these messages holds their rows: what is stored meanwhile is removed, too.
  PERFORM FROM messages WHERE message_id = ANY(p_messages) ORDER BY message_id FOR UPDATE;
  FOR of_embedder, vectors IN SELECT embedder_id, to_regclass('embedding_vectors_' || embedder_id) FROM embedders LOOP
    IF vectors IS NOT NULL THEN
      EXECUTE format(
        'WITH gone AS (DELETE FROM %s WHERE message_id = ANY($1) RETURNING conversation_id)
         UPDATE embedded_conversations e SET passages = greatest(0, e.passages - counted.passages)
         FROM (SELECT conversation_id, count(*) AS passages FROM gone GROUP BY conversation_id) AS counted
         WHERE e.conversation_id = counted.conversation_id AND e.embedder_id = $2', vectors
      ) USING p_messages, of_embedder;
    END IF;
  END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION lcm_embed_again(p_conversation_id bigint, p_from_seq bigint) RETURNS void
LANGUAGE sql AS $$
  -- A worker may have read these texts before they changed: it loses its lease, and with it what it has not stored.
  UPDATE embedded_conversations
  SET upto_seq = least(upto_seq, p_from_seq - 1),
      fence = CASE WHEN state = 'leased' THEN fence + 1 ELSE fence END,
      leased_until = CASE WHEN state = 'leased' THEN statement_timestamp() ELSE leased_until END
  WHERE conversation_id = p_conversation_id AND (upto_seq >= p_from_seq OR state = 'leased')
$$;

CREATE OR REPLACE FUNCTION lcm_forget_vectors_of_texts() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM embedders) THEN
    PERFORM lcm_forget_vectors(ARRAY(SELECT message_id FROM changed));
    PERFORM lcm_embed_again(conversation_id, min(seq)) FROM changed
    WHERE erased_by_id IS NULL AND cold_block_id IS NULL GROUP BY conversation_id ORDER BY conversation_id;
  END IF;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER messages_take_their_vectors_along AFTER UPDATE ON messages
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION lcm_forget_vectors_of_texts();

CREATE OR REPLACE FUNCTION lcm_forget_vectors_of_quarantined() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  held bigint := CASE
    WHEN NEW.target ~ '^msg_[0-9]{1,18}$' THEN substr(NEW.target, 5)::bigint
    ELSE (SELECT message_id FROM message_parts WHERE part_id = NEW.target)
  END;
BEGIN
  IF held IS NULL OR NOT EXISTS (SELECT FROM embedders) THEN
    RETURN NULL;
  END IF;
  IF NEW.released_at IS NULL THEN
    PERFORM lcm_forget_vectors(ARRAY[held]);
  ELSE
    PERFORM lcm_embed_again(conversation_id, seq) FROM messages WHERE message_id = held;
  END IF;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER quarantines_take_vectors_along AFTER INSERT OR UPDATE OF released_at ON quarantines
  FOR EACH ROW EXECUTE FUNCTION lcm_forget_vectors_of_quarantined();
