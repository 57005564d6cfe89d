-- The items of a step in their order, how each stands, and what it has put out. Along the primary key.
SELECT position, status, output FROM tasks
WHERE run_no = ?1 AND position >= ?2 AND position < ?3 AND item IS NOT NULL ORDER BY position;
