-- Unknown outcomes: an intent of a step remembers that nobody knows what became of its body.
-- compatible-with: 1
--
-- 0: the body was to begin, and no more is known. Else how many of its runs ended without anybody knowing: it is not run again
-- before somebody has found out.
ALTER TABLE step_intent ADD COLUMN attempts integer NOT NULL DEFAULT 0;
