-- Runs that stay on the node of a session, but for those that are set aside. Index: runs_owned.
SELECT no FROM runs WHERE owner = ?1 AND placement <> 'local' AND no NOT IN (SELECT run_no FROM quarantine);
