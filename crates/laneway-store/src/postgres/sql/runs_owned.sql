-- Runs that belong to a session. Index: runs_owned.
SELECT no FROM runs WHERE owner = $1;
