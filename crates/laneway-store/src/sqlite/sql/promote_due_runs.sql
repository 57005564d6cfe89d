-- Runs that were submitted for a moment that has come, but for those that are set aside. Index: runs_for_later.
SELECT no FROM runs
WHERE not_before IS NOT NULL AND not_before <= ?1 AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY not_before, no;
