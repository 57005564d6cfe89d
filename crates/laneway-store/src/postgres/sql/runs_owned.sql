-- Runs that belong to a session, and whether each is a pinned one that can be changed. Index: runs_owned.
SELECT no, id, placement = 'pinned' AND NOT EXISTS (SELECT 1 FROM quarantine WHERE run_no = no) FROM runs WHERE owner = $1;
