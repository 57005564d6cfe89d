-- Runs of a workflow that wait for others of it to end, oldest first. One that is for later is not among them. One whose
-- process is gone is passed over: it would take the place and do nothing with it. Index: runs_queued.
SELECT no, id FROM runs
WHERE workflow = ?1 AND status = 'queued' AND is_visible = 1 AND not_before IS NULL
  AND NOT (placement = 'local' AND owner IS NULL)
  AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY no;
