-- name: seal_table
-- Give {table} a seal over {columns}, and seal the rows it has; with columns of another choice, replace its seal.
-- Immutable rows get their seal, too: the migration holds the table. Only writes of sealed columns run the trigger; by
-- its name it runs after the triggers that refuse changes.
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
-- Take the seal off {table}.
DROP TRIGGER {table}_are_sealed ON {table};
ALTER TABLE {table} DROP COLUMN row_seal;
