-- Sessions of a node ($1), or one ($2).
SELECT id FROM sessions WHERE node = $1 OR id = $2 ORDER BY id;
