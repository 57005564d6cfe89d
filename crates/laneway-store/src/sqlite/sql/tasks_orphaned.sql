-- Tasks of a run whose holder is over: it was reaped while the run was set aside. Along the primary key.
SELECT position, attempt, session, coalesce(node, 'unknown'), attempt + given_back FROM tasks
WHERE run_no = ?1 AND status IN ('available', 'running') AND session IS NOT NULL
  AND session NOT IN (SELECT id FROM sessions)
ORDER BY position;
