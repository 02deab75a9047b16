-- Queues: a claim goes through the entries of what has left a line once, instead of five times.
-- compatible-with: 1

-- They are asked, and answer, differently now: they are made anew with the functions.
DROP FUNCTION IF EXISTS waiting_queues(text, integer);
DROP FUNCTION IF EXISTS waiting_keys(text, integer, text, text, integer);
DROP FUNCTION IF EXISTS first_in_line(text, integer, text, text, text[], text[], integer);
DROP FUNCTION IF EXISTS pick_from_queue(text, integer, text, bigint, text, text[], text[], jsonb, text[], text[]);
