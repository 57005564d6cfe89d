-- Who is next when a run may have more at once. Index: tasks_waiting.
SELECT position FROM tasks WHERE run_no = ?1 AND gate = 'max_parallel' ORDER BY rank, position LIMIT ?2;
