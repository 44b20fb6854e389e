-- The moves of a conversation's head, and the messages that are not on the path to the head.
--
-- A row of head_moves means: the message appended at `at_seq` follows the message `head_seq`, not the one before it. So
-- each message has one predecessor, and there is one path from it back to the first. The active path is that of the
-- head.

-- Returns the seqs up to `p_head` that are not on the path to it. The loop goes back from move to move: the messages
-- after a move's `head_seq` and before its `at_seq` are off the path.
CREATE FUNCTION lcm_off_path(p_conversation_id bigint, p_head bigint) RETURNS int8multirange
LANGUAGE plpgsql STABLE AS $$
DECLARE
  tip bigint := p_head;
  off_path int8multirange := '{}';
  step record;
BEGIN
  LOOP
    SELECT m.at_seq, m.head_seq INTO step FROM head_moves m
      WHERE m.conversation_id = p_conversation_id AND m.at_seq <= tip
      ORDER BY m.at_seq DESC, m.number DESC LIMIT 1;
    EXIT WHEN NOT FOUND OR step.head_seq >= step.at_seq;
    off_path := off_path + int8multirange(int8range(step.head_seq + 1, step.at_seq));
    tip := step.head_seq;
  END LOOP;
  RETURN off_path;
END
$$;

-- The head at the time when `p_next_seq` was the next seq and the head had moved `p_moves` times.
CREATE FUNCTION lcm_head_at(p_conversation_id bigint, p_next_seq bigint, p_moves bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce((
    SELECT CASE WHEN m.at_seq >= p_next_seq THEN m.head_seq END FROM head_moves m
    WHERE m.conversation_id = p_conversation_id AND m.number <= p_moves AND m.at_seq <= p_next_seq
    ORDER BY m.number DESC LIMIT 1
  ), p_next_seq - 1)
$$;

-- The value of `conversations.inactive`: the seqs before `p_next_seq` that are not on the path to the head.
CREATE FUNCTION lcm_inactive(p_conversation_id bigint, p_next_seq bigint, p_moves bigint) RETURNS int8multirange
LANGUAGE sql STABLE AS $$
  SELECT lcm_off_path(p_conversation_id, head) + int8multirange(int8range(head + 1, greatest(head + 1, p_next_seq)))
  FROM lcm_head_at(p_conversation_id, p_next_seq, p_moves) AS head
$$;

-- The head of a conversation, computed from the columns of its row alone.
CREATE FUNCTION lcm_head_seq(p_next_seq bigint, p_inactive int8multirange) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN p_inactive @> p_next_seq - 1
         THEN (SELECT max(lower(stretch)) - 1 FROM unnest(p_inactive) AS stretch)
         ELSE p_next_seq - 1 END
$$;

-- Requires that moves are numbered from 1 without gaps, and that `at_seq` never decreases.
CREATE FUNCTION lcm_follow_move() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  last head_moves;
BEGIN
  SELECT * INTO last FROM head_moves WHERE conversation_id = NEW.conversation_id ORDER BY number DESC LIMIT 1;
  IF NEW.number <> coalesce(last.number, 0) + 1 OR NEW.at_seq < coalesce(last.at_seq, 1) THEN
    RAISE EXCEPTION 'move % of conversation % does not follow the one before', NEW.number, NEW.conversation_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER head_moves_follow_each_other BEFORE INSERT ON head_moves
  FOR EACH ROW EXECUTE FUNCTION lcm_follow_move();
CREATE TRIGGER head_moves_are_immutable BEFORE UPDATE OR DELETE ON head_moves
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER head_moves_are_kept BEFORE TRUNCATE ON head_moves
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();
