-- When time will open the next gate, wake the next parked task, or begin or end the next run: walks along indexes, each of which ends
-- at the first entry whose run is not set aside.
SELECT min(at) FROM (
    SELECT min(wake_at) AS at FROM tasks
    WHERE wake_at IS NOT NULL AND run_no NOT IN (SELECT run_no FROM quarantine)
    UNION ALL
    SELECT min(due_at) FROM tasks
    WHERE due_at IS NOT NULL AND run_no NOT IN (SELECT run_no FROM quarantine)
    UNION ALL
    SELECT min(not_before) FROM runs
    WHERE not_before IS NOT NULL AND no NOT IN (SELECT run_no FROM quarantine)
    UNION ALL
    SELECT min(deadline_at) FROM runs
    WHERE deadline_at IS NOT NULL AND status = 'running' AND no NOT IN (SELECT run_no FROM quarantine)
);
