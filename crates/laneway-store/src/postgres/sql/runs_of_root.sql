-- Runs that a local run has started, and those below them, that have not ended. Index: runs_of_root.
SELECT id FROM runs WHERE root_no = $1 AND status IN ('queued', 'running') ORDER BY no;
