-- Tasks of a run whose holder is over: it was reaped while the run was set aside. Along the primary key.
SELECT position, attempt, session, coalesce(node, 'unknown'), attempt + given_back FROM tasks
WHERE run_no = $1 AND status = 'running' AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = tasks.session)
ORDER BY position;
