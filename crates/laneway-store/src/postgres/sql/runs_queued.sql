-- Runs of a workflow that wait for others of it to end, oldest first. Index: runs_queued.
SELECT id FROM runs
WHERE workflow = $1 AND status = 'queued' AND is_visible AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY no;
