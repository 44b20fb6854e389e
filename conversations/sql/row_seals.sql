-- Checksums (seals) of rows whose facts no content hash covers: who owns a conversation, how a summary was made, what a
-- check found. `row_seal` is the SHA-256 of the table's name and the sealed columns, which
-- integrity/column_protection.toml lists. A trigger computes it on every write. A change with triggers disabled leaves
-- a seal that does not match.

-- Computes the seal of these columns. The function sets some parameters, so that the text of a value does not depend on
-- the session.
CREATE FUNCTION lcm_row_seal(p_table text, p_columns record) RETURNS bytea
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET timezone = 'UTC' SET bytea_output = 'hex' SET extra_float_digits = 1 AS $$
BEGIN
  RETURN sha256(convert_to(p_table || ' ' || to_jsonb(p_columns)::text, 'UTF8'));
END
$$;

-- Sets the seal of a written row. The trigger's arguments are the sealed columns. The function removes all other
-- columns from the row's JSON, because that copies the values only once.
CREATE FUNCTION lcm_seal_row() RETURNS trigger
LANGUAGE plpgsql
SET timezone = 'UTC' SET bytea_output = 'hex' SET extra_float_digits = 1 AS $$
DECLARE
  columns jsonb := to_jsonb(NEW);
BEGIN
  columns := columns - ARRAY(SELECT name FROM jsonb_object_keys(columns) AS name WHERE name <> ALL (TG_ARGV));
  NEW.row_seal := sha256(convert_to(TG_TABLE_NAME || ' ' || columns::text, 'UTF8'));
  RETURN NEW;
END
$$;
