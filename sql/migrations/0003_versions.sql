-- Long life: continue-as-new, and workflows that wait for an app version.
-- compatible-with: 1
--
-- A library of an older schema leaves workflows that have continued as new to others: it would number their calls from 0 again.

ALTER TABLE workflow_status
  -- The number of the first call of the run that is under way. Numbers go on over continue-as-new, since the idempotency keys
  -- of steps are made of them.
  ADD COLUMN first_seq   integer NOT NULL DEFAULT 0,
  -- Nothing is recorded that code would have to fit, so an executor of any app version may claim it, as it may what no
  -- execution has ever owned.
  ADD COLUMN any_version boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT first_seq_counts CHECK (first_seq >= 0);

-- Which app versions something waits for: found by hopping from one to the next. What runs on any version is not in it, so
-- that enqueuing does not pay for it.
CREATE INDEX workflow_status_pinned ON workflow_status (app_version)
  WHERE status IN ('ENQUEUED', 'DELAYED', 'SUSPENDED') AND NOT any_version AND (epoch > 0 OR forked_from IS NOT NULL);
