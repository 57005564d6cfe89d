-- Runs whose id, or its end, begins so; enough of them to tell that they are several. Index: runs_by_tail, and that of
-- the ids. `g` is the first letter behind the hexadecimal ones; ids compare by bytes.
SELECT id FROM runs WHERE is_visible AND tail >= $1 AND tail < $1 || 'g'
UNION
SELECT id FROM runs WHERE is_visible AND id >= $1 AND id < $1 || 'g'
LIMIT 6;
