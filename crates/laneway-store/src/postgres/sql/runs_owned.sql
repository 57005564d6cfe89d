-- Runs that belong to a session, and whether each stays on its node and can be changed. Index: runs_owned.
SELECT no, id, placement <> 'local' AND NOT EXISTS (SELECT 1 FROM quarantine WHERE run_no = no) FROM runs WHERE owner = $1;
