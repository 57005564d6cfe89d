-- name: runs_of_root
-- Returns all descendants of a local run, and whether each is unfinished.
-- Index: runs_of_root.
SELECT id, status IN ('queued', 'running') FROM runs WHERE root_no = ?1 AND is_visible = 1 ORDER BY no;

-- name: wanted_add
-- Requests a child run to be started. Each task has at most a single request.
INSERT OR REPLACE INTO wanted_runs (run_no, position, life, workflow, params, again) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: wanted_remove
-- Deletes the request for a child run that was started or is no longer needed.
DELETE FROM wanted_runs WHERE run_no = ?1 AND position = ?2;
