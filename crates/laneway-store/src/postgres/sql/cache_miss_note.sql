-- Why a task is executed, if it is still held by whom it was: task, claim generation, session and `running`. Index: tasks_pkey.
INSERT INTO cache_misses (run_no, position, attempt, body)
SELECT run_no, position, attempt, $5 FROM tasks
WHERE run_no = $1 AND position = $2 AND status = 'running' AND attempt + given_back = $3 AND session = $4
ON CONFLICT (run_no, position) DO UPDATE SET attempt = excluded.attempt, body = excluded.body
RETURNING 1;
