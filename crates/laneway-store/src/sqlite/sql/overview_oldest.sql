-- The oldest runs that have not ended and are not set aside. Index: runs_unfinished.
SELECT no, id FROM runs
WHERE status IN ('queued', 'running') AND is_visible = 1 AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY no LIMIT ?1;
