-- The move is finished.
DELETE FROM meta WHERE key = 'moving_from' AND value = $1 RETURNING key;
