-- Runs of a workflow that have started and not ended, oldest first, also those that are set aside, and whether they are: they have their
-- places. Index: runs_running.
SELECT no, id, closing IN ('canceled', 'run_timeout'), no IN (SELECT run_no FROM quarantine)
FROM runs WHERE workflow = ?1 AND status = 'running' ORDER BY no;
