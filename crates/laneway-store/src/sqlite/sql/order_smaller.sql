-- How many tasks with a smaller version have yet to end, counted up to ?3.
SELECT count(*) FROM (SELECT 1 FROM orders WHERE key = ?1 AND version < ?2 LIMIT ?3);
