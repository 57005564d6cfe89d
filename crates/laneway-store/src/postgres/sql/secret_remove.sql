-- Says whether there was one.
DELETE FROM secrets WHERE name = $1 RETURNING 1;
