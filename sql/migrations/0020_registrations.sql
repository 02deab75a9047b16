-- A registration is known again, by its nonce: one that was given up may arrive after the one that was sent in its place.
-- compatible-with: 1

-- Null: by a library that does not send one.
ALTER TABLE executor ADD COLUMN nonce uuid;
