-- When time will open the next gate, or end the next run: a walk along an index that ends at the first entry whose
-- run is not set aside.
SELECT min(at) FROM (
    SELECT min(wake_at) AS at FROM tasks
    WHERE wake_at IS NOT NULL AND run_no NOT IN (SELECT run_no FROM quarantine)
    UNION ALL
    SELECT min(deadline_at) FROM runs
    WHERE deadline_at IS NOT NULL AND status = 'running' AND no NOT IN (SELECT run_no FROM quarantine)
);
