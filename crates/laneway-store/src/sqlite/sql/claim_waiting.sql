-- Who is next in line for a place, and whether its last attempt has left anything to show. Index: tasks_waiting.
SELECT position, attempt, reason IS NULL AND node IS NULL AND started_at IS NULL
FROM tasks WHERE run_no = ?1 AND gate = 'max_parallel' ORDER BY rank, position LIMIT ?2;
