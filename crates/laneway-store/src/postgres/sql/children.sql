-- name: runs_of_root
-- Returns all descendants of a local run, and whether each is unfinished.
-- Index: runs_of_root.
SELECT id, status IN ('queued', 'running') FROM runs WHERE root_no = $1 ORDER BY no;

-- name: wanted_add
-- Requests child runs to be started. Each task has at most a single request.
INSERT INTO wanted_runs (run_no, position, life, workflow, params, again)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_no, position) DO UPDATE
SET life = excluded.life, workflow = excluded.workflow, params = excluded.params, again = excluded.again;

-- name: wanted_remove
-- Deletes requests for child runs that were started or are no longer needed.
DELETE FROM wanted_runs USING unnest($1, $2) AS gone (run_no, position)
WHERE wanted_runs.run_no = gone.run_no AND wanted_runs.position = gone.position;
