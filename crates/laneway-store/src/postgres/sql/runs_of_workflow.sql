-- Runs of a workflow that have not ended. Indexes: runs_running, runs_queued.
SELECT id FROM runs WHERE workflow = $1 AND status = 'running'
UNION ALL
SELECT id FROM runs WHERE workflow = $1 AND status = 'queued' AND is_visible;
