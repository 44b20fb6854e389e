-- name: seal_table
-- Add `row_seal`, a hash of {columns}, to {table}: compute it for existing rows, and by a trigger for later writes. Run
-- again with other columns, this replaces the seal. Triggers are disabled meanwhile, because rows may be immutable. The
-- new trigger runs only for writes of sealed columns, after the triggers that refuse changes: they run in the order of
-- their names.
ALTER TABLE {table} ADD COLUMN IF NOT EXISTS row_seal BYTEA;
ALTER TABLE {table} DISABLE TRIGGER USER;
UPDATE {table} t SET row_seal = lcm_row_seal('{table}', sealed)
FROM (SELECT ctid AS place, {columns} FROM {table}) AS row, LATERAL (SELECT {row_columns}) AS sealed
WHERE row.place = t.ctid;
ALTER TABLE {table} ENABLE TRIGGER USER;
DROP TRIGGER IF EXISTS {table}_are_sealed ON {table};
CREATE TRIGGER {table}_are_sealed BEFORE INSERT OR UPDATE OF {columns}, row_seal ON {table}
FOR EACH ROW EXECUTE FUNCTION lcm_seal_row({quoted_columns});

-- name: unseal_table
-- Remove the column `row_seal` and its trigger from {table}.
DROP TRIGGER {table}_are_sealed ON {table};
ALTER TABLE {table} DROP COLUMN row_seal;
