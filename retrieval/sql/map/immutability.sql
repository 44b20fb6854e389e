-- Triggers that refuse changes to a run's request, to an item's input, and to a completed output. Only an erasure may
-- empty texts: it reduces the prompt to the placeholder of the item.

CREATE TRIGGER map_runs_are_as_requested BEFORE UPDATE OF
  run_id, workspace_id, conversation_id, kind, input_file_id, prompt, output_schema, model, concurrency, max_attempts,
  temperature, timeout_s, retain, delegated_scope, kept_work, grant_id, read_only, parent_run_id, idempotency_key, total,
  prompt_hash, schema_hash, input_hash, created_at ON map_runs
FOR EACH ROW WHEN (
  NEW.prompt NOT IN (OLD.prompt, '{{item}}')
  OR (NEW.run_id, NEW.workspace_id, NEW.conversation_id, NEW.kind, NEW.input_file_id, NEW.output_schema, NEW.model,
      NEW.concurrency, NEW.max_attempts, NEW.temperature, NEW.timeout_s, NEW.retain, NEW.delegated_scope, NEW.kept_work,
      NEW.grant_id, NEW.read_only, NEW.parent_run_id, NEW.idempotency_key, NEW.total, NEW.prompt_hash, NEW.schema_hash,
      NEW.input_hash, NEW.created_at)
    IS DISTINCT FROM
     (OLD.run_id, OLD.workspace_id, OLD.conversation_id, OLD.kind, OLD.input_file_id, OLD.output_schema, OLD.model,
      OLD.concurrency, OLD.max_attempts, OLD.temperature, OLD.timeout_s, OLD.retain, OLD.delegated_scope, OLD.kept_work,
      OLD.grant_id, OLD.read_only, OLD.parent_run_id, OLD.idempotency_key, OLD.total, OLD.prompt_hash, OLD.schema_hash,
      OLD.input_hash, OLD.created_at)
) EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER map_runs_are_not_removed BEFORE DELETE ON map_runs
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER map_runs_are_kept BEFORE TRUNCATE ON map_runs
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER map_items_are_as_submitted BEFORE UPDATE OF item_id, run_id, position, input, input_hash ON map_items
FOR EACH ROW WHEN (
  NEW.input NOT IN (OLD.input, '')
  OR (NEW.item_id, NEW.run_id, NEW.position, NEW.input_hash)
    IS DISTINCT FROM (OLD.item_id, OLD.run_id, OLD.position, OLD.input_hash)
) EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER map_items_are_completed_once BEFORE UPDATE OF state, output, output_hash ON map_items
FOR EACH ROW WHEN (
  OLD.state = 'done'
  AND (NEW.state <> 'done' OR NEW.output NOT IN (OLD.output, '') OR NEW.output_hash <> OLD.output_hash)
) EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER map_items_are_not_removed BEFORE DELETE ON map_items
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER map_items_are_kept BEFORE TRUNCATE ON map_items
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();
