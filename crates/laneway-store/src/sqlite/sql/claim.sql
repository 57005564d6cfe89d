-- Takes up to ?3 available tasks of a class for a session, oldest first, and mints their attempts.
-- Guarantee: one statement picks and takes, so two claimers never get the same task. A session that is over
-- gets nothing, and a run that is set aside gives nothing. Index: tasks_available.
UPDATE tasks
SET status = 'running', attempt = attempt + 1, session = ?1
WHERE (run_no, position) IN (
    SELECT run_no, position
    FROM tasks
    WHERE status = 'available' AND class = ?2
    ORDER BY rank, run_no, position
    LIMIT ?3
)
AND EXISTS (SELECT 1 FROM sessions WHERE id = ?1)
AND NOT EXISTS (SELECT 1 FROM quarantine WHERE run_no = -?2)
RETURNING run_no, position, attempt, rank;
