-- When time will open the next gate, or end the next run. Both are the first entry of an index.
SELECT min(at) FROM (
    SELECT min(run_at) AS at FROM tasks WHERE gate = 'run_at'
    UNION ALL
    SELECT min(deadline_at) FROM runs WHERE deadline_at IS NOT NULL AND status = 'running'
);
