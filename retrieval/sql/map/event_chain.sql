-- The record of map runs: a hash chain for each run, computed and protected by triggers.

-- The text of an entry that is hashed, one line for each column; docs/map.md describes it. The time is in UTC, whatever
-- the session's time zone. The details come last, as their stored text.
CREATE FUNCTION lcm_map_event_text(entry map_events) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT concat_ws(E'\n',
    entry.run_id, entry.seq::text, to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    entry.actor, entry.event, coalesce(entry.position::text, ''),
    encode(entry.input_hash, 'hex'), encode(entry.output_hash, 'hex'), entry.details::text)
$$;

CREATE FUNCTION lcm_chain_map_event() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  newest map_events;
BEGIN
  -- Entries of one run are written one after the other.
  PERFORM FROM map_runs WHERE run_id = NEW.run_id FOR NO KEY UPDATE;
  SELECT * INTO newest FROM map_events WHERE run_id = NEW.run_id ORDER BY seq DESC LIMIT 1;
  NEW.seq := coalesce(newest.seq, 0) + 1;
  NEW.at := greatest(clock_timestamp(), newest.at);
  NEW.previous_hash := coalesce(newest.hash, '');
  NEW.hash := sha256(NEW.previous_hash || convert_to(lcm_map_event_text(NEW), 'UTF8'));
  RETURN NEW;
END
$$;

CREATE TRIGGER map_events_are_chained BEFORE INSERT ON map_events
  FOR EACH ROW EXECUTE FUNCTION lcm_chain_map_event();
CREATE TRIGGER map_events_are_immutable BEFORE UPDATE OR DELETE ON map_events
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER map_events_are_kept BEFORE TRUNCATE ON map_events
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();
