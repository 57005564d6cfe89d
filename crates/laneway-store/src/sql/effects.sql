-- name: effect
-- Returns the record of an effect without its output. The caller locks the run in an earlier
-- statement. Uses the primary key.
SELECT status, attempt, session, execution, started_at, token FROM effects
WHERE run_no = $1 AND position = $2 AND name = $3 AND key = $4;

-- name: effect_result
-- Returns the result of an effect that has happened. Uses the primary key.
SELECT exit_code, stdout, output, lacks FROM effects
WHERE run_no = $1 AND position = $2 AND name = $3 AND key = $4 AND status = 'done';

-- name: effect_states
-- Returns the effects of a run in the form that its history records. Uses the primary key.
SELECT position, name, key, status, attempt, exit_code, settled_by FROM effects WHERE run_no = $1
ORDER BY position, name, key;
