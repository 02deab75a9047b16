-- Records a planned compensation as dealt with by hand, so that the rollback, once resumed, goes on with the next one. Does not
-- resume it.
--
--   ENQUEUED DELAYED BLOCKED CANCELLED DEAD_LETTER    done: the status stays
--   PENDING                                           refused 'status': an execution may be running it at this moment
--   SUSPENDED SUCCESS ERROR                           refused 'status': there is no rollback, or it is over
--   refused 'compensation'                            no compensation p_seq is planned, or it has a result
--
-- p_output is the encoded result. Epoch 0: no execution wrote it.
CREATE OR REPLACE FUNCTION skip_compensation(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_seq integer, p_output text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s' SET enable_seqscan = off
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_name    text;
  v_version bigint;
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  IF status_before IN ('PENDING', 'SUSPENDED', 'SUCCESS', 'ERROR') THEN
    result := 'refused';
    refusal := 'status';
    RETURN;
  END IF;
  SELECT i.name INTO v_name
    FROM step_intent i
   WHERE i.workflow_id = p_workflow_id AND i.seq = p_seq AND i.kind = 'compensation'
     AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.seq = i.seq);
  IF NOT FOUND THEN
    result := 'refused';
    refusal := 'compensation';
    RETURN;
  END IF;

  UPDATE workflow_status s SET record_version = s.record_version + 1, updated_at = v_now
   WHERE s.workflow_id = p_workflow_id
  RETURNING s.record_version INTO v_version;
  INSERT INTO step_result (workflow_id, seq, name, kind, output, attempts, record_version, epoch, nonce, started_at, completed_at)
  VALUES (p_workflow_id, p_seq, v_name, 'compensation', p_output, 0, v_version, 0, p_nonce, v_now, v_now);
  PERFORM record_control(ARRAY[p_workflow_id], 'skip-compensation', p_nonce, p_actor, p_reason, ARRAY[status_before], status_before,
                         ARRAY[jsonb_build_object('seq', p_seq, 'name', v_name)], false);
  result := 'done';
END
$$;
