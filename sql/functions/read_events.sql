-- Current values of events: one query for everyone who waits in a process. Answers only for those that need not wait:
--   set      value is the current one
--   ended    the workflow has ended (found_status) without setting it; CONTINUED: it goes on, but what was asked for under this key
--            is not answered any more, see is_left_behind
--   missing  there is no such workflow
-- One statement, one snapshot: the last event of a workflow is there before its end is. A primary that was replaced says
-- nothing: see await_standbys.
CREATE OR REPLACE FUNCTION read_events(p_workflow_ids text[], p_keys text[])
RETURNS TABLE (item integer, answer text, value text, found_status text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT r.place::integer,
         CASE WHEN s.workflow_id IS NULL THEN 'missing' WHEN e.value IS NOT NULL THEN 'set' ELSE 'ended' END,
         e.value,
         CASE WHEN s.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER') THEN s.status ELSE 'CONTINUED' END
    FROM unnest(p_workflow_ids, p_keys) WITH ORDINALITY AS r (workflow_id, key, place)
    LEFT JOIN workflow_status s ON s.workflow_id = r.workflow_id
    LEFT JOIN LATERAL (
      SELECT v.value FROM event v WHERE v.workflow_id = r.workflow_id AND v.key = r.key
       ORDER BY v.record_version DESC LIMIT 1
    ) e ON true
   WHERE s.workflow_id IS NULL OR e.value IS NOT NULL
      OR s.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')
      OR (s.first_seq > 0 AND starts_with(r.key, 'holdfast:update:') AND is_left_behind(r.workflow_id, r.key));
  IF FOUND THEN
    PERFORM await_standbys();
  END IF;
END
$$;
