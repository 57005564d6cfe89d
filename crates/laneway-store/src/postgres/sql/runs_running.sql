-- Runs of a workflow that have started and not ended, oldest first, also those that are set aside, and whether they are: they have their
-- places. Index: runs_running.
SELECT no, id, coalesce(closing IN ('canceled', 'run_timeout'), false),
       EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
FROM runs WHERE workflow = $1 AND status = 'running' ORDER BY no;
