-- Runs that a local run has started, and those below them, with how each stands. Index: runs_of_root.
SELECT id, status IN ('queued', 'running') FROM runs WHERE root_no = $1 ORDER BY no;
