-- Tasks that are to be looked at by now, but for runs that are set aside: some wait at a gate that time opens, some are
-- parked. Index: tasks_timed, tasks_due.
SELECT run_no, position FROM (
    SELECT * FROM (
        SELECT run_no, position FROM tasks
        WHERE wake_at IS NOT NULL AND wake_at <= ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
        ORDER BY wake_at LIMIT 1000)
    UNION ALL
    SELECT * FROM (
        SELECT run_no, position FROM tasks
        WHERE due_at IS NOT NULL AND due_at <= ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
        ORDER BY due_at LIMIT 1000)
);
