-- An execution ends its run and has the workflow begin anew with another input: continue-as-new. The workflow keeps its ID, its
-- attributes, its deadline and its place in a queue; its history goes, and it can be claimed at once, on any app version, with
-- a fresh budget of attempts.
--
-- p_first_seq is the number of the next call: numbers go on, so that no idempotency key comes a second time. What belongs to
-- the workflow and not to the run (messages, events, children) is left alone: a child goes on, and is still cancelled with the
-- workflow.
--
-- p_unreceived: numbers of receiving calls, as an array in text form, whose message the code has not got. What they have taken,
-- a moment before the run ended, waits again, in its old place.
--
-- answer is null when done, by this call or by an earlier one whose reply was lost; else see classify_refusal. reply is not used.
CREATE OR REPLACE FUNCTION continue_workflow(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_input text, p_first_seq integer,
  p_unreceived text,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT reply text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now            timestamptz := clock();
  v_leaves_updates boolean;
  v_unreceived     integer[];
BEGIN
  PERFORM FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN
    -- An answer that could not be recorded is followed by one that says so: only what was set counts.
    WITH gone AS (DELETE FROM step_result r WHERE r.workflow_id = p_workflow_id RETURNING r.seq, r.kind, r.name, r.output)
    SELECT count(*) FILTER (WHERE g.kind = 'receive' AND starts_with(g.name, 'holdfast:update:'))
             > count(*) FILTER (WHERE g.kind = 'event' AND starts_with(g.name, 'holdfast:update:') AND g.output IS NOT NULL),
           array_agg(g.seq) FILTER (WHERE g.kind = 'receive' AND g.seq = ANY (p_unreceived::integer[]))
      INTO v_leaves_updates, v_unreceived
      FROM gone g;
    DELETE FROM step_intent i WHERE i.workflow_id = p_workflow_id;
    -- Most calls that are open have taken nothing: then what the workflow has ever got is not looked through.
    IF v_unreceived IS NOT NULL THEN
      UPDATE message m SET consumed_seq = NULL WHERE m.workflow_id = p_workflow_id AND m.consumed_seq = ANY (v_unreceived);
    END IF;
    -- The nonce stays: it is that of the start.
    UPDATE workflow_input i SET input = p_input WHERE i.workflow_id = p_workflow_id;
    PERFORM end_ownership(ARRAY[p_workflow_id], 'continued', p_nonce);
    UPDATE workflow_status s
       SET status = 'ENQUEUED', owner_token = NULL, record_version = p_version + 1, updated_at = v_now, wake_at = NULL,
           attempts = 0, first_seq = p_first_seq, any_version = true, attention = NULL, attention_detail = NULL
     WHERE s.workflow_id = p_workflow_id;
    -- Whoever waits for the reply to one that was received and is not answered: see is_left_behind.
    IF v_leaves_updates THEN
      PERFORM wake_waiters(ARRAY[p_workflow_id]);
    END IF;
    PERFORM pg_notify(current_schema() || '.work', '');
  ELSE
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, NULL) c
     WHERE NOT EXISTS (SELECT FROM ended_ownership o WHERE o.workflow_id = p_workflow_id AND o.nonce = p_nonce);
  END IF;
END
$$;
