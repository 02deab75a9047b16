-- The first statement of every control operation: locks the workflow's row and says whether there is anything to do.
-- What the operations do after it (fork has the same beginning, but shares the lock):
--
--   status        cancel       resume       rewind       fork      delete     delete by force
--   ENQUEUED      CANCELLED    unchanged    ENQUEUED     new one   refused    gone
--   DELAYED       CANCELLED    ENQUEUED     ENQUEUED     new one   refused    gone
--   PENDING       CANCELLED    unchanged    ENQUEUED     new one   refused    gone
--   SUSPENDED     CANCELLED    ENQUEUED     ENQUEUED     new one   refused    gone
--   BLOCKED       CANCELLED    ENQUEUED     ENQUEUED     new one   refused    gone
--   SUCCESS       unchanged    refused      ENQUEUED     new one   gone       gone
--   ERROR         unchanged    refused      ENQUEUED     new one   gone       gone
--   CANCELLED     unchanged    ENQUEUED     ENQUEUED     new one   gone       gone
--   DEAD_LETTER   unchanged    ENQUEUED     ENQUEUED     new one   gone       gone
--
-- "unchanged" and "refused" write nothing.
--
--   result is null     the row is locked until the transaction ends, and status_before is what the verb has to judge
--   result 'done'      this very call (p_nonce) has committed before and its reply was lost: its answer, once more
--   result 'missing'   there is no such workflow
--
-- The lock comes first and the audit is read after it, so that a call whose first try is still running waits for that try
-- and then finds its row. The status that a verb allows is judged on the locked row: a predicate in this statement would
-- answer "no row" for both a missing and an unfit workflow, and by the time of a second look it could be another status.
--
-- The operations bound every lock wait by lock_timeout: a statement that acts on many workflows holds the rows that it has
-- got meanwhile, and executions meet those. The client divides such a statement, and sends what met the lock again.
CREATE OR REPLACE FUNCTION begin_control(
  p_workflow_id text, p_nonce uuid, OUT result text, OUT status_before text, OUT status_after text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_status text;
BEGIN
  SELECT s.status INTO v_status FROM workflow_status s WHERE s.workflow_id = p_workflow_id FOR NO KEY UPDATE;
  SELECT 'done', a.status_before, a.status_after INTO result, status_before, status_after
    FROM admin_audit a WHERE a.workflow_id = p_workflow_id AND a.audit_id = p_nonce;
  IF result IS NULL THEN
    status_before := v_status;
    status_after := v_status;
    IF v_status IS NULL THEN
      result := 'missing';
      -- Nothing was locked, so nothing would wait for the synchronous standbys.
      PERFORM await_standbys();
    END IF;
  END IF;
END
$$;
