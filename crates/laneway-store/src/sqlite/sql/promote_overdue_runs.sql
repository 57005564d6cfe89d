-- Runs whose timeout has passed, but for those that are set aside. Index: runs_with_deadline.
SELECT no FROM runs
WHERE deadline_at IS NOT NULL AND status = 'running' AND deadline_at <= ?1
  AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY deadline_at, no;
