-- Runs whose id, or its end, begins so; enough of them to tell that they are several. Index: runs_by_tail.
-- `g` is the first letter behind the hexadecimal ones.
SELECT id FROM runs WHERE is_visible = 1 AND tail >= ?1 AND tail < ?1 || 'g'
UNION
SELECT id FROM runs WHERE is_visible = 1 AND id >= ?1 AND id < ?1 || 'g'
LIMIT 6;
