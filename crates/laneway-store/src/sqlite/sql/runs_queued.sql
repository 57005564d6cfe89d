-- Runs of a workflow that wait for others of it to end, oldest first. Index: runs_queued.
SELECT id FROM runs
WHERE workflow = ?1 AND status = 'queued' AND is_visible = 1 AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY no;
