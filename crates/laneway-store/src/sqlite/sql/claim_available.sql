-- What can be claimed next, oldest first. Index: tasks_available.
SELECT position, attempt FROM tasks WHERE status = 'available' AND class = ?1 ORDER BY rank, run_no, position LIMIT ?2;
