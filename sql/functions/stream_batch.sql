-- Writes entries of streams: of many workflows, and of several entries of one.
--
-- One array element per entry. A workflow's first entry in the batch carries p_counts = the number of its entries in the
-- batch; its others carry 0 and follow it. p_versions is the record version before its first entry.
-- p_kinds     'stream' or 'stream-close' for a call of the workflow, whose result p_outputs is recorded along with the entry;
--             null for an entry that the body of a step writes, which is visible before the step has a result
-- p_values    null with 'stream-close'; closing a stream that is closed records the call and nothing else
-- p_places    not null: at this place among what the step p_seqs writes to the stream; written once, whoever tries again
--
-- Returns one row per entry that this call, or an earlier one whose reply was lost, did NOT write under its nonce; see
-- classify_refusal for the answers, and
--   there   an earlier attempt of the step has written this place: nothing was to be written
--   closed  the stream is closed: nothing was written
-- Each entry that was written raised the version by one; these two raised nothing.
--
-- Why it has this shape:
-- * Token and version are the predicate of the statement that locks the row, and rows are locked in the order of
--   checkpoint_batch, skipping those that somebody holds.
-- * Offsets are given under that lock, so those of parallel writers have no gap. One after the other rather than as a set:
--   whether an entry is written depends on those before it in the same batch.
-- * The workflow's row is updated once, at the end: a version of it for each entry could not be pruned in this transaction.
-- * A batch took effect as a whole or not at all, and 'there' and 'closed' last as long as the ownership does. So a batch
--   that is sent again because its reply was lost is answered as it was the first time.
-- * ON CONFLICT looks for an entry that is there without a plan. A query could be planned, while the table is small, to read the
--   whole stream; where there is one below, it is for answers that are rare.
-- * Only the newest entries are searched for a nonce: an execution has one batch under way, and nobody else writes.
CREATE OR REPLACE FUNCTION stream_batch(
  p_workflow_ids text[], p_tokens uuid[], p_versions bigint[], p_counts integer[], p_nonces uuid[],
  p_seqs integer[], p_kinds text[], p_streams text[], p_values text[], p_outputs text[],
  p_attempts integer[], p_places integer[], p_elapsed_ms integer[]
)
RETURNS TABLE (item integer, answer text, found_status text, found_epoch bigint, found_version bigint, found_detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  -- At least as many as a batch has rows.
  c_newest   CONSTANT integer := 1000;
  v_now      timestamptz := clock();
  v_answers  text[] := array_fill('denied'::text, ARRAY[cardinality(p_workflow_ids)]);
  v_ids      text[] := '{}';
  v_versions bigint[] := '{}';
  v_group    integer;
  v_owned    boolean := false;
  v_epoch    bigint;
  v_entry    record;
  v_last     bigint;
  v_closed   boolean;
BEGIN
  FOR v_entry IN
    SELECT r.*
      FROM unnest(p_workflow_ids, p_tokens, p_versions, p_counts, p_nonces, p_seqs, p_kinds, p_streams, p_values, p_outputs,
                  p_attempts, p_places, p_elapsed_ms) WITH ORDINALITY
        AS r (workflow_id, token, version, entries, nonce, seq, kind, stream, value, output,
              attempt, once_place, elapsed_ms, place)
     ORDER BY r.workflow_id COLLATE "C", r.place
  LOOP
    IF v_entry.entries > 0 THEN
      SELECT s.epoch INTO v_epoch FROM workflow_status s
       WHERE s.workflow_id = v_entry.workflow_id AND s.owner_token = v_entry.token AND s.record_version = v_entry.version
         FOR NO KEY UPDATE SKIP LOCKED;
      v_owned := FOUND;
      IF v_owned THEN
        v_ids := v_ids || v_entry.workflow_id;
        v_versions := v_versions || v_entry.version;
        v_group := cardinality(v_ids);
      END IF;
    END IF;
    CONTINUE WHEN NOT v_owned;

    SELECT e.entry_offset, e.value IS NULL INTO v_last, v_closed
      FROM stream_entry e
     WHERE e.workflow_id = v_entry.workflow_id AND e.stream = v_entry.stream
     ORDER BY e.entry_offset DESC LIMIT 1;
    v_closed := coalesce(v_closed, false);
    IF v_closed AND v_entry.kind IS DISTINCT FROM 'stream-close' THEN
      v_answers[v_entry.place] := CASE
        WHEN v_entry.once_place IS NOT NULL AND EXISTS (
               SELECT FROM stream_entry e
                WHERE e.workflow_id = v_entry.workflow_id AND e.stream = v_entry.stream AND e.seq = v_entry.seq
                  AND e.once_place = v_entry.once_place) THEN 'there'
        ELSE 'closed' END;
      CONTINUE;
    END IF;
    IF NOT v_closed THEN
      INSERT INTO stream_entry (workflow_id, stream, entry_offset, value, seq, attempt, once_place, epoch, nonce, written_at)
      VALUES (v_entry.workflow_id, v_entry.stream, coalesce(v_last + 1, 0), v_entry.value, v_entry.seq, v_entry.attempt,
              v_entry.once_place, v_epoch, v_entry.nonce, v_now)
      ON CONFLICT (workflow_id, stream, seq, once_place) WHERE once_place IS NOT NULL DO NOTHING;
      IF NOT FOUND THEN
        v_answers[v_entry.place] := 'there';
        CONTINUE;
      END IF;
    END IF;
    v_versions[v_group] := v_versions[v_group] + 1;
    IF v_entry.kind IS NOT NULL THEN
      INSERT INTO step_result (workflow_id, seq, name, kind, output, attempts, record_version, epoch, nonce,
                               started_at, completed_at)
      VALUES (v_entry.workflow_id, v_entry.seq, v_entry.stream, v_entry.kind, v_entry.output, 1, v_versions[v_group],
              v_epoch, v_entry.nonce, v_now - v_entry.elapsed_ms * interval '1 ms', v_now);
    END IF;
    v_answers[v_entry.place] := NULL;
  END LOOP;

  UPDATE workflow_status s
     SET record_version = u.version, updated_at = v_now
    FROM unnest(v_ids, v_versions) AS u (workflow_id, version)
   WHERE s.workflow_id = u.workflow_id AND s.record_version < u.version;

  IF array_remove(v_answers, NULL) <> '{}' THEN
    -- One statement, one snapshot: see checkpoint_one.
    RETURN QUERY
    SELECT r.place::integer,
           CASE WHEN r.answer <> 'denied' THEN r.answer
                WHEN c.answer <> 'conflict' THEN c.answer
                WHEN r.once_place IS NOT NULL AND EXISTS (
                       SELECT FROM stream_entry e
                        WHERE e.workflow_id = r.workflow_id AND e.stream = r.stream AND e.seq = r.seq
                          AND e.once_place = r.once_place) THEN 'there'
                WHEN r.kind IS DISTINCT FROM 'stream-close'
                 AND (SELECT e.value IS NULL FROM stream_entry e
                       WHERE e.workflow_id = r.workflow_id AND e.stream = r.stream
                       ORDER BY e.entry_offset DESC LIMIT 1) THEN 'closed'
                ELSE 'conflict' END,
           c.found_status, c.found_epoch, c.found_version, c.found_detail
      FROM unnest(p_workflow_ids, p_tokens, p_versions, p_nonces, p_seqs, p_kinds, p_streams, p_places, v_answers)
        WITH ORDINALITY AS r (workflow_id, token, version, nonce, seq, kind, stream, once_place, answer, place)
      CROSS JOIN LATERAL classify_refusal(r.workflow_id, r.token, r.version, CASE WHEN r.kind IS NOT NULL THEN r.seq END) c
     WHERE r.answer IS NOT NULL
       AND NOT EXISTS (SELECT FROM step_result x
                        WHERE r.kind IS NOT NULL AND x.workflow_id = r.workflow_id AND x.seq = r.seq AND x.nonce = r.nonce)
       AND NOT EXISTS (SELECT FROM (SELECT e.nonce FROM stream_entry e
                                     WHERE r.kind IS NULL AND e.workflow_id = r.workflow_id AND e.stream = r.stream
                                     ORDER BY e.entry_offset DESC LIMIT c_newest) newest
                        WHERE newest.nonce = r.nonce);
  END IF;
END
$$;
