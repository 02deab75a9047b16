-- Sagas: the plan of a rollback is a step_intent row of kind 'compensation' for each compensation, recorded before any of them runs.
-- compatible-with: 1

ALTER TABLE step_intent
  -- The number of the step that the compensation undoes; null: it is a function that the workflow's code registered.
  ADD COLUMN undoes integer,
  -- The encoded error of a compensation that failed for good. One that has a result since then succeeded in the end.
  ADD COLUMN failure text;
