-- What full text search sees of a summary tells, as of a message, among which 1,024 messages it stands: those with its
-- last. So the index for words leads to the summaries of what is newest, however many others have the words.
-- Made anew, as PostgreSQL 16 knows no other way to change what a column is generated from.
ALTER TABLE summaries
  DROP COLUMN content_tsv,
  ADD COLUMN content_tsv tsvector GENERATED ALWAYS AS (lcm_tsv_at(content, conversation_id, last_seq)) STORED;
CREATE INDEX summaries_tsv_gin_idx ON summaries USING gin (content_tsv);
