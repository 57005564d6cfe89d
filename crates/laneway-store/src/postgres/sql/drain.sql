-- The sessions of a node take nothing more.
UPDATE sessions SET is_draining = true WHERE node = $1 RETURNING id;
