-- Who is next in line for a place, and whether its last attempt has left anything to show. Index: tasks_waiting.
SELECT position, attempt, given_back, reason IS NULL AND node IS NULL AND started_at IS NULL
FROM tasks WHERE run_no = ?1 AND gate = 'max_parallel' 
  AND NOT EXISTS (SELECT 1 FROM runs WHERE no = ?1 AND pauses IS NOT NULL)
ORDER BY rank, position LIMIT ?2;
