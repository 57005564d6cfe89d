-- The oldest runs that have not ended, are not for later and are not set aside, each with whether it has more tasks
-- than ?2. Index: runs_unfinished.
SELECT no, id, workflow, version, (SELECT 1 FROM tasks WHERE tasks.run_no = runs.no LIMIT 1 OFFSET ?2) IS NOT NULL
FROM runs INDEXED BY runs_unfinished
WHERE status IN ('queued', 'running') AND is_visible = 1 AND not_before IS NULL AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY no LIMIT ?1;
