-- Pinned runs that a session owns, but for those that are set aside. Index: runs_owned.
SELECT no FROM runs WHERE owner = ?1 AND placement = 'pinned' AND no NOT IN (SELECT run_no FROM quarantine);
