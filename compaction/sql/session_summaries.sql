-- Make session, arc and epoch summaries immutable, like messages and summaries; see conversations/sql/immutability.sql.

-- A summary stays in the workspace of its conversation and of its project.
ALTER TABLE session_summaries
  ADD CONSTRAINT session_summaries_share_the_workspace_of_their_project
    FOREIGN KEY (project_id, workspace_id) REFERENCES projects (project_id, workspace_id),
  ADD CONSTRAINT session_summaries_share_the_workspace_of_their_conversation
    FOREIGN KEY (conversation_id, workspace_id) REFERENCES conversations (conversation_id, workspace_id);

-- Only an erasure, recorded in the audit log by the same transaction, may remove the text and set `erased_by_id`.
CREATE FUNCTION lcm_keep_session_summary() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  taken text[] := ARRAY['content', 'content_tsv', 'erased_by_id'];
BEGIN
  IF to_jsonb(NEW) - taken IS DISTINCT FROM to_jsonb(OLD) - taken OR NEW.content <> '' OR NOT EXISTS (
    SELECT FROM audit_log
    WHERE transaction_id = pg_current_xact_id_if_assigned() AND act = 'erase' AND workspace_id = OLD.workspace_id
      AND audit_id = NEW.erased_by_id
  ) THEN
    RAISE EXCEPTION 'UPDATE on session_summaries refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation', HINT = 'Summarize the session again.';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER session_summaries_are_immutable BEFORE UPDATE ON session_summaries
  FOR EACH ROW EXECUTE FUNCTION lcm_keep_session_summary();
CREATE TRIGGER session_summaries_are_not_removed BEFORE DELETE ON session_summaries
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER session_summaries_are_kept BEFORE TRUNCATE ON session_summaries
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER session_summary_children_are_immutable BEFORE UPDATE OR DELETE ON session_summary_children
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER session_summary_children_are_kept BEFORE TRUNCATE ON session_summary_children
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER session_summary_memories_are_immutable BEFORE UPDATE OR DELETE ON session_summary_memories
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER session_summary_memories_are_kept BEFORE TRUNCATE ON session_summary_memories
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- A summary without a source cannot be committed. Deferred, because the links are written after their summary.
CREATE FUNCTION lcm_require_history_source() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM session_summary_memories WHERE summary_id = NEW.summary_id AND NEW.depth = 0
    UNION ALL
    SELECT FROM session_summary_children WHERE parent_id = NEW.summary_id AND NEW.depth > 0
  ) THEN
    RAISE EXCEPTION 'session summary % links to no source', NEW.summary_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER session_summaries_have_a_source AFTER INSERT ON session_summaries
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lcm_require_history_source();
