-- Runs of a workflow that have not ended, in the order of locks. Indexes: runs_running, runs_queued.
SELECT id FROM (
    SELECT id, no FROM runs WHERE workflow = $1 AND status = 'running'
    UNION ALL
    SELECT id, no FROM runs WHERE workflow = $1 AND status = 'queued' AND is_visible
) AS unended ORDER BY no;
