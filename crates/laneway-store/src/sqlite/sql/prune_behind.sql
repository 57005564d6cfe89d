-- The position behind the next so many tasks of a run that goes; none behind the last of them. Items stand far behind steps, so
-- that positions say nothing of how many there are. Along the primary key.
SELECT position FROM tasks WHERE run_no = ?1 ORDER BY position LIMIT 1 OFFSET ?2;
