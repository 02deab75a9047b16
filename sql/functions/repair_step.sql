-- A person says what became of a step. Only while no live execution owns the workflow, and only of a step whose body may have
-- run without a result (its intent is there), or whose failure is the last thing on record: a result that the workflow has gone on
-- from never changes.
--
-- p_repair:
--   'result'        p_output is its result: it happened
--   'error'         p_error is its result: it failed
--   'skip'          p_output takes the place of a result; the step has 0 attempts, by which it is known
--   'not-happened'  its body is run again, since it did not happen
--   'retry'         its body is run again, whatever happened
--
-- p_resume: the workflow runs again from where its record ends, as after resume_workflow. A step that had failed always does
-- that, since what the workflow has ended with came from its error.
--
--   status                       step without a result           step that failed last
--   PENDING, lease alive         refused 'owned'                 refused 'owned'
--   PENDING, lease expired       done: ENQUEUED                  done: ENQUEUED
--   ENQUEUED DELAYED SUSPENDED   done; with p_resume: ENQUEUED   done: ENQUEUED
--   BLOCKED                      done; with p_resume: ENQUEUED   done: ENQUEUED
--   CANCELLED DEAD_LETTER        done; with p_resume: ENQUEUED   done: ENQUEUED
--   ERROR                        done; p_resume refused          done: ENQUEUED
--   SUCCESS                      done; p_resume refused          refused 'status'
--
-- refused 'unrecorded' (nothing is recorded under that number), 'kind' (no step; detail says what), 'recorded' (it has a result),
-- 'overtaken' (something was recorded after its error; detail says which number), 'rollback' (to run it again, of a workflow that is
-- being rolled back: no body is run there, and a step without an intent would be taken for one that did not happen).
CREATE OR REPLACE FUNCTION repair_step(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_seq integer, p_repair text, p_output text, p_error text,
  p_resume boolean,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s'
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_now      timestamptz := clock();
  v_self     workflow_status%ROWTYPE;
  v_failed   step_result%ROWTYPE;
  v_intent   step_intent%ROWTYPE;
  v_is_again boolean;
  v_unknown  text;
  v_audit    jsonb;
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  result := 'refused';
  SELECT * INTO v_self FROM workflow_status s WHERE s.workflow_id = p_workflow_id;
  PERFORM FROM executor e
    WHERE v_self.owner_token IS NOT NULL AND e.executor_id = v_self.executor_id AND e.incarnation = v_self.incarnation
      AND e.lease_until > v_now;
  IF FOUND THEN
    refusal := 'owned';
    RETURN;
  END IF;

  SELECT * INTO v_failed FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq = p_seq;
  SELECT * INTO v_intent FROM step_intent i WHERE i.workflow_id = p_workflow_id AND i.seq = p_seq;
  v_is_again := v_failed.workflow_id IS NOT NULL OR p_resume;
  IF coalesce(v_failed.kind, v_intent.kind) IS NULL THEN
    refusal := 'unrecorded';
  ELSIF coalesce(v_failed.kind, v_intent.kind) <> 'step' THEN
    refusal := 'kind';
    detail := coalesce(v_failed.kind, v_intent.kind);
  ELSIF v_failed.output IS NOT NULL THEN
    refusal := 'recorded';
  ELSIF p_repair = 'retry'
        AND EXISTS (SELECT FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.kind = 'rollback') THEN
    refusal := 'rollback';
  ELSIF status_before = 'SUCCESS' AND v_is_again OR status_before = 'ERROR' AND p_resume AND v_failed.workflow_id IS NULL THEN
    refusal := 'status';
  ELSIF v_failed.workflow_id IS NOT NULL THEN
    SELECT later.seq INTO detail
      FROM (
        SELECT r.seq, r.record_version FROM step_result r WHERE r.workflow_id = p_workflow_id
        UNION ALL
        SELECT i.seq, i.record_version FROM step_intent i WHERE i.workflow_id = p_workflow_id AND i.seq <> p_seq
      ) later
     WHERE later.record_version > v_failed.record_version
     ORDER BY later.seq
     LIMIT 1;
    refusal := CASE WHEN FOUND THEN 'overtaken' END;
  END IF;
  IF refusal IS NOT NULL THEN
    RETURN;
  END IF;

  DELETE FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq = p_seq;
  IF p_repair IN ('not-happened', 'retry') THEN
    DELETE FROM step_intent i WHERE i.workflow_id = p_workflow_id AND i.seq = p_seq;
  ELSE
    INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, record_version, epoch,
                             nonce, started_at, completed_at)
    VALUES (p_workflow_id, p_seq, coalesce(v_failed.name, v_intent.name), 'step', p_output, p_error,
            CASE p_repair WHEN 'skip' THEN 0 ELSE greatest(v_failed.attempts, v_intent.attempts, 1) END,
            v_failed.attempt_errors, v_self.record_version + 1, v_self.epoch, p_nonce,
            coalesce(v_failed.started_at, v_intent.recorded_at), v_now);
  END IF;

  v_audit := jsonb_build_object('seq', p_seq, 'step', coalesce(v_failed.name, v_intent.name), 'repair', p_repair,
                                'replaces', CASE WHEN v_failed.workflow_id IS NOT NULL THEN 'error' END,
                                'attention', v_self.attention);
  IF v_is_again THEN
    PERFORM resume_tree(ARRAY[p_workflow_id], ARRAY[status_before], NULL, NULL, p_nonce, p_actor, p_reason);
    -- The row that resume_tree has written is the one by which this call is known again.
    UPDATE admin_audit a SET verb = 'repair', detail = jsonb_strip_nulls(v_audit)
     WHERE a.workflow_id = p_workflow_id AND a.audit_id = p_nonce;
    status_after := 'ENQUEUED';
  ELSE
    v_unknown := unknown_outcomes(p_workflow_id);
    status_after := CASE status_before WHEN 'PENDING' THEN 'ENQUEUED' ELSE status_before END;
    UPDATE workflow_status s
       SET status = status_after, owner_token = NULL, record_version = s.record_version + 1, updated_at = v_now,
           attention = CASE WHEN s.attention = 'OUTCOME_UNKNOWN' AND v_unknown IS NULL AND status_before <> 'BLOCKED' THEN NULL
                            ELSE s.attention END,
           attention_detail = CASE WHEN s.attention IS DISTINCT FROM 'OUTCOME_UNKNOWN' THEN s.attention_detail
                                   WHEN v_unknown IS NOT NULL THEN v_unknown
                                   WHEN status_before = 'BLOCKED' THEN 'What became of its steps is recorded: resume it.' END
     WHERE s.workflow_id = p_workflow_id;
    PERFORM record_control(ARRAY[p_workflow_id], 'repair', p_nonce, p_actor, p_reason, ARRAY[status_before], status_after,
                           ARRAY[v_audit], status_after = 'ENQUEUED');
  END IF;
  result := 'done';
END
$$;
