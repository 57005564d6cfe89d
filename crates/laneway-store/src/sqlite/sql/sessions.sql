-- Every session that nobody has reaped.
SELECT id, node FROM sessions ORDER BY id;
