-- All runs, oldest first.
SELECT id FROM runs WHERE is_visible = 1 ORDER BY no;
