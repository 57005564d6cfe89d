-- Runs of a workflow that have started and not ended, oldest first. Index: runs_running.
SELECT id, coalesce(closing IN ('canceled', 'run_timeout'), false) FROM runs
WHERE workflow = $1 AND status = 'running' ORDER BY no;
