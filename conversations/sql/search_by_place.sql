-- What full text search sees of a text that stands somewhere: beside its own lexemes, one that tells in which conversation,
-- and of a message one more that tells among which 1,024 messages of it. So the index for words leads to the texts of one
-- conversation, or to its newest, however many others there are. No text has such a lexeme: there is a blank in it.
CREATE FUNCTION lcm_places(conversation_id bigint, seq bigint) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(CASE
  WHEN seq IS NULL THEN ARRAY['in ' || conversation_id]
  ELSE ARRAY['in ' || conversation_id, 'in ' || conversation_id || '/' || seq / 1024]
END);

CREATE FUNCTION lcm_tsv_at_of_large(content text, places tsvector) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
  size integer := 250000;
BEGIN
  LOOP
    BEGIN
      RETURN lcm_tsv(left(content, size)) || places;
    -- With these, the lexemes may be too many by a few bytes.
    EXCEPTION WHEN program_limit_exceeded THEN
      size := size / 2;
    END;
  END LOOP;
END
$$;

CREATE FUNCTION lcm_tsv_at(content text, conversation_id bigint, seq bigint) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN octet_length(content) <= 20000 THEN lcm_tsv(content) || lcm_places(conversation_id, seq)
  ELSE lcm_tsv_at_of_large(content, lcm_places(conversation_id, seq))
END;

-- Made anew, as PostgreSQL 16 knows no other way to change what a column is generated from.
ALTER TABLE messages
  DROP COLUMN content_tsv,
  ADD COLUMN content_tsv tsvector GENERATED ALWAYS AS (lcm_tsv_at(content, conversation_id, seq)) STORED;
CREATE INDEX messages_tsv_gin_idx ON messages USING gin (content_tsv);
ALTER TABLE summaries
  DROP COLUMN content_tsv,
  ADD COLUMN content_tsv tsvector GENERATED ALWAYS AS (lcm_tsv_at(content, conversation_id, NULL)) STORED;
CREATE INDEX summaries_tsv_gin_idx ON summaries USING gin (content_tsv);
