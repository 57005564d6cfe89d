-- name: run_end
SELECT status, reason FROM runs WHERE no = $1;

-- name: run_outputs
-- Returns the outputs of steps. Steps have positions below $2; items have positions above.
SELECT position, output FROM tasks WHERE run_no = $1 AND position < $2 AND output IS NOT NULL ORDER BY position;

-- name: run_owner
SELECT submitted_by, owner FROM runs WHERE no = $1;

-- name: run_state
-- Returns the stored run, for comparison with a replay of its history.
SELECT workflow, version, status, reason, closing, submitted_at, started_at, finished_at, last_event, pauses, levels,
       deadline_at, not_before
FROM runs WHERE no = $1;

-- name: runs_running_since
-- Returns the running runs of a workflow, oldest first.
-- Index: runs_running.
SELECT id, started_at FROM runs WHERE workflow = $1 AND status = 'running' ORDER BY no;
