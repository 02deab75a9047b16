-- Records the results of steps: of many workflows, and of several steps of one.
--
-- One array element per step. A workflow's first step in the batch carries p_counts = the number of its steps in the
-- batch; its others carry 0 and follow it. p_versions is the record version before the step, p_elapsed_ms how long the
-- step took (by the executor's monotonic clock; times are the database's).
--
-- Returns one row per step that is NOT recorded under its nonce when the call ends: no row means all are recorded, by this
-- call or by an earlier one whose reply was lost. See classify_refusal for the answers.
--
-- Why it has this shape:
-- * Token and version are the predicate of the statement that locks the row; nothing is decided by an earlier read.
-- * Rows that nobody holds are updated at once, which saves locking, sorting and finding them again: 4.7 us of 22.6. xmax says
--   so: 0, or, where the transaction that wrote the row had locked it before, that one. Who locks a row in the moment between
--   makes the batch wait; lock_timeout bounds that, and the writer then finds the item by splitting.
-- * SKIP LOCKED for the others: a row that somebody holds is answered as 'locked' and the neighbours go on.
-- * ORDER BY: two batches lock in one order, so a zombie and an owner cannot deadlock.
-- * The step's columns travel through RETURNING. Joining them back by position is a nested loop over the batch: 10,400
--   steps/s instead of 28,400 with 250 in a batch.
-- * The row is written where it was locked (ctid), which saves a second look-up: 1.5 us of 15.
-- * Arrays are read by place: parameters are expanded arrays here, and unnest would make a row of 14 columns three times.
-- * = ANY (ARRAY[..]) of one ID: with =, the primary key also gives an order to merge by, so that the planner may read a small table
--   whole for each place, and keep that plan when it has grown.
-- * The planner settings pin the one plan that is right for every size of the tables: look up by primary key.
CREATE OR REPLACE FUNCTION checkpoint_batch(
  p_workflow_ids text[], p_tokens uuid[], p_versions bigint[], p_counts integer[], p_nonces uuid[],
  p_seqs integer[], p_names text[], p_kinds text[], p_outputs text[], p_errors text[],
  p_attempts integer[], p_attempt_errors text[], p_child_ids text[], p_elapsed_ms integer[]
)
RETURNS TABLE (item integer, answer text, found_status text, found_epoch bigint, found_version bigint, found_detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET enable_memoize = off SET enable_bitmapscan = off SET lock_timeout = '50ms'
AS $$
DECLARE
  v_now      timestamptz := clock();
  v_accepted text[];
  v_written  integer := 0;
  v_others   integer;
BEGIN
  IF 0 <> ALL (p_counts) THEN
    WITH bumped AS (
      UPDATE workflow_status s
         SET record_version = s.record_version + 1, updated_at = v_now
        FROM generate_series(1, cardinality(p_workflow_ids)) AS r (place)
       WHERE s.workflow_id = ANY (ARRAY[p_workflow_ids[r.place]])
         AND s.owner_token = p_tokens[r.place] AND s.record_version = p_versions[r.place]
         AND (s.xmax = '0' OR s.xmax = s.xmin)
      RETURNING r.place, s.epoch
    )
    INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, child_id,
                             record_version, epoch, nonce, started_at, completed_at)
    SELECT p_workflow_ids[b.place], p_seqs[b.place], p_names[b.place], p_kinds[b.place], p_outputs[b.place],
           p_errors[b.place], p_attempts[b.place], p_attempt_errors[b.place], p_child_ids[b.place],
           p_versions[b.place] + 1, b.epoch, p_nonces[b.place], v_now - p_elapsed_ms[b.place] * interval '1 ms', v_now
      FROM bumped b;
    GET DIAGNOSTICS v_written = ROW_COUNT;
    IF v_written = cardinality(p_workflow_ids) THEN
      RETURN;
    END IF;
  END IF;

  WITH locked AS MATERIALIZED (
    SELECT r.*, s.epoch, s.ctid AS place
      FROM unnest(p_workflow_ids, p_tokens, p_versions, p_counts, p_nonces, p_seqs, p_names, p_kinds, p_outputs, p_errors,
                  p_attempts, p_attempt_errors, p_child_ids, p_elapsed_ms)
        AS r (workflow_id, token, version, steps, nonce, seq, name, kind, output, error,
              attempts, attempt_errors, child_id, elapsed_ms)
      JOIN workflow_status s ON s.workflow_id = r.workflow_id
     WHERE r.steps > 0 AND s.owner_token = r.token AND s.record_version = r.version
     ORDER BY s.workflow_id
       FOR NO KEY UPDATE OF s SKIP LOCKED
  ), bumped AS (
    UPDATE workflow_status s
       SET record_version = l.version + l.steps, updated_at = v_now
      FROM locked l
     WHERE s.ctid = l.place
    RETURNING l.*
  ), inserted AS (
    INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, child_id,
                             record_version, epoch, nonce, started_at, completed_at)
    SELECT b.workflow_id, b.seq, b.name, b.kind, b.output, b.error, b.attempts, b.attempt_errors, b.child_id,
           b.version + 1, b.epoch, b.nonce, v_now - b.elapsed_ms * interval '1 ms', v_now
      FROM bumped b
    RETURNING workflow_id
  )
  SELECT count(*), array_agg(i.workflow_id) INTO v_others, v_accepted FROM inserted i;
  v_written := v_written + v_others;

  IF 0 = ANY (p_counts) AND v_written > 0 THEN
    WITH inserted AS (
      INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, child_id,
                               record_version, epoch, nonce, started_at, completed_at)
      SELECT r.workflow_id, r.seq, r.name, r.kind, r.output, r.error, r.attempts, r.attempt_errors, r.child_id,
             r.version + 1, s.epoch, r.nonce, v_now - r.elapsed_ms * interval '1 ms', v_now
        FROM unnest(p_workflow_ids, p_tokens, p_versions, p_counts, p_nonces, p_seqs, p_names, p_kinds, p_outputs,
                    p_errors, p_attempts, p_attempt_errors, p_child_ids, p_elapsed_ms)
          AS r (workflow_id, token, version, steps, nonce, seq, name, kind, output, error,
                attempts, attempt_errors, child_id, elapsed_ms)
        -- Accepted by the statement above, so the row is locked by this transaction. The token is compared all the same:
        -- a step of another execution of this workflow must not come in with the owner's.
        JOIN unnest(v_accepted) AS a (workflow_id) ON a.workflow_id = r.workflow_id
        JOIN workflow_status s ON s.workflow_id = r.workflow_id
       WHERE r.steps = 0 AND s.owner_token = r.token AND r.version < s.record_version
      RETURNING 1
    )
    SELECT v_written + count(*) INTO v_written FROM inserted;
  END IF;

  IF v_written < cardinality(p_workflow_ids) THEN
    RETURN QUERY
    SELECT r.position::integer, c.*
      FROM unnest(p_workflow_ids, p_tokens, p_versions, p_nonces, p_seqs) WITH ORDINALITY
             AS r (workflow_id, token, version, nonce, seq, position)
      CROSS JOIN LATERAL classify_refusal(r.workflow_id, r.token, r.version, r.seq) c
     WHERE NOT EXISTS (SELECT FROM step_result x
                        WHERE x.workflow_id = r.workflow_id AND x.seq = r.seq AND x.nonce = r.nonce);
  END IF;
END
$$;
