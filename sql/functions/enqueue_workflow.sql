-- Enqueues one workflow, from a trigger or from any language, in the caller's transaction. Returns its ID; that of the
-- workflow which has the ID or the deduplication ID already when it attaches to that one.
--
-- p_arguments is the JSON array of the workflow's arguments. p_queue null: no queue. p_on_conflict is 'reject' or 'attach'.
--
-- SQLSTATEs, each with a hint:
--   HF001  there is no such queue
--   HF002  another workflow holds the deduplication ID (in DETAIL)
--   HF003  the ID belongs to a workflow of another name
--   22023  an argument is not of the documented form
CREATE OR REPLACE FUNCTION enqueue_workflow(
  p_name text, p_arguments jsonb DEFAULT '[]', p_queue text DEFAULT NULL, p_workflow_id text DEFAULT NULL,
  p_priority integer DEFAULT 0, p_key text DEFAULT NULL, p_delay interval DEFAULT NULL,
  p_deduplication_id text DEFAULT NULL, p_deduplication_window interval DEFAULT NULL, p_on_conflict text DEFAULT 'reject',
  p_instance text DEFAULT NULL, p_timeout interval DEFAULT NULL, p_max_attempts integer DEFAULT 100,
  p_attributes jsonb DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_id      text := coalesce(p_workflow_id, new_workflow_id());
  v_refused record;
BEGIN
  IF jsonb_typeof(p_arguments) IS DISTINCT FROM 'array' OR p_on_conflict IS NULL
     OR p_on_conflict NOT IN ('reject', 'attach') OR p_deduplication_id = '' OR p_key = '' OR p_max_attempts < 1
     OR p_delay < interval '0' OR p_deduplication_window < interval '0' OR p_timeout < interval '0'
     OR jsonb_typeof(p_attributes) <> 'object' THEN
    RAISE EXCEPTION 'An argument of enqueue_workflow is not of the documented form.'
      USING ERRCODE = '22023',
            HINT = 'p_arguments is a JSON array, p_attributes an object, p_on_conflict reject or attach; texts are not empty.';
  END IF;
  LOOP
    SELECT e.* INTO v_refused
      FROM enqueue_items(
             ARRAY[v_id], ARRAY[gen_random_uuid()], ARRAY[p_name], ARRAY[p_instance], ARRAY[p_arguments::text],
             ARRAY[p_max_attempts], ARRAY[(extract(epoch FROM p_timeout) * 1000)::bigint], ARRAY[p_attributes::text],
             ARRAY[p_queue], ARRAY[p_priority], ARRAY[p_key], ARRAY[(extract(epoch FROM p_delay) * 1000)::bigint],
             ARRAY[p_deduplication_id], ARRAY[(extract(epoch FROM p_deduplication_window) * 1000)::bigint],
             NULL, NULL, NULL) e;
    EXIT WHEN v_refused.answer IS DISTINCT FROM 'missing';
  END LOOP;
  CASE v_refused.answer
    WHEN 'no_queue' THEN
      RAISE EXCEPTION 'There is no queue "%".', p_queue
        USING ERRCODE = 'HF001', HINT = 'Declare it in "queues" of launch, or define it with queues.define.';
    WHEN 'deduplicated' THEN
      IF p_on_conflict = 'reject' THEN
        RAISE EXCEPTION 'Another workflow holds the deduplication ID.'
          USING ERRCODE = 'HF002', DETAIL = v_refused.found_detail, HINT = 'Pass p_on_conflict => ''attach'' to get its ID.';
      END IF;
      RETURN v_refused.found_detail;
    WHEN 'exists' THEN
      IF v_refused.found_detail <> p_name THEN
        RAISE EXCEPTION 'The workflow ID belongs to a workflow named "%".', v_refused.found_detail
          USING ERRCODE = 'HF003', HINT = 'Choose another ID.';
      END IF;
    ELSE
      PERFORM pg_notify(current_schema() || '.work', '');
  END CASE;
  RETURN v_id;
END
$$;
