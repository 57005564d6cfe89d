-- name: outputs
-- Returns the items of steps in their order, with status and output. Uses the primary key.
SELECT tasks.run_no, wanted.step, position, status, output
FROM tasks JOIN unnest($1, $2, $3, $4) AS wanted (run_no, step, first, behind)
  ON tasks.run_no = wanted.run_no AND position >= wanted.first AND position < wanted.behind
WHERE item IS NOT NULL ORDER BY tasks.run_no, position;

-- name: scope
-- Returns what expressions can read of steps. Uses the primary key.
SELECT position, status, output FROM tasks WHERE run_no = $1 AND position = ANY ($2) ORDER BY position;

-- name: task
-- Returns every column of tasks that changes. The last column shows whether a session accepts the
-- task, for tasks that may become available. Uses the primary key.
SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence,
       CASE WHEN status = 'pending' AND class >= 0 THEN EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) END
FROM tasks JOIN unnest($1, $2) AS wanted (run_no, position) USING (run_no, position);

-- name: task_counts
-- Counts the tasks of runs by status. A claim that has not started counts under its earlier status.
-- A step that failed because of its items is not counted as failed: each failure counts once. Also
-- returns the first start of executed tasks. The attempt column is above 1 if a task had an attempt
-- before the attempt in its row. Uses the primary key.
SELECT run_no,
       CASE WHEN status <> 'running' OR started_at IS NOT NULL THEN status
            WHEN is_ahead THEN 'pending'
            ELSE 'available' END,
       count(*) FILTER (WHERE NOT (status = 'failed' AND reason IS NOT DISTINCT FROM 'items')),
       min(started_at) FILTER (WHERE wait IS NULL AND growth IS NULL), max(attempt + CASE WHEN started_at IS NULL THEN 1 ELSE 0 END),
       count(*)
FROM tasks WHERE run_no = ANY ($1) GROUP BY 1, 2;

-- name: task_counts_of_few
-- Returns the same as `task_counts`, from at most $2 tasks of each run. Uses the primary key. Takes
-- no locks.
SELECT run.no,
       CASE WHEN task.status <> 'running' OR task.started_at IS NOT NULL THEN task.status
            WHEN task.is_ahead THEN 'pending'
            ELSE 'available' END,
       count(*) FILTER (WHERE NOT (task.status = 'failed' AND task.reason IS NOT DISTINCT FROM 'items')),
       min(task.started_at) FILTER (WHERE task.wait IS NULL AND task.growth IS NULL), max(task.attempt + CASE WHEN task.started_at IS NULL THEN 1 ELSE 0 END),
       count(*)
FROM unnest($1) AS run (no)
CROSS JOIN LATERAL (SELECT status, reason, started_at, is_ahead, wait, growth, attempt FROM tasks WHERE run_no = run.no LIMIT $2) AS task
GROUP BY 1, 2;

-- name: task_save
-- Writes tasks back as the gate keeper changed them. The WHERE clause is the fence: each row must
-- be as the keeper read it, and claims are checked against the same columns. If a row has changed,
-- the division by zero fails the transaction, whose COMMIT is already on its way. Uses the primary
-- key.
WITH saved AS (
    UPDATE tasks
    SET status = made.status, gate = made.gate, rank = made.rank, run_at = made.run_at, attempt = made.attempt,
        retries = made.retries, lost = made.lost, session = made.session, is_ahead = made.is_ahead, node = made.node,
        stop = made.stop, reason = made.reason, detail = made.detail, exit_code = made.exit_code, output = made.output,
        started_at = made.started_at, took_ms = made.took_ms, finished_at = made.finished_at,
        gate_key = made.gate_key, wake_at = made.wake_at, class = made.class,
        wait = made.wait, due_at = made.due_at, growth = made.growth,
        given_back = made.given_back, start_by = made.start_by, fence = made.fence
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                $24, $25, $26, $27, $28, $29, $30, $31, $32)
         AS made (run_no, position, was_status, was_generation, was_session, status, gate, rank, run_at, attempt, retries,
                  lost, session, is_ahead, node, stop, reason, detail, exit_code, output, started_at, took_ms, finished_at,
                  gate_key, wake_at, class, wait, due_at, growth, given_back, start_by, fence)
    WHERE tasks.run_no = made.run_no AND tasks.position = made.position AND tasks.status = made.was_status
      AND tasks.attempt + tasks.given_back = made.was_generation AND tasks.session IS NOT DISTINCT FROM made.was_session
    RETURNING 1
)
SELECT 1 / (SELECT count(*) = cardinality($1) FROM saved)::int;

-- name: task_states_part
-- Returns the same as `task_states`, for ranges of positions (from $2 on, before $3). Uses the
-- primary key.
SELECT position, status, attempt, node, reason, detail, exit_code, output, run_at, started_at, finished_at,
       retries, lost, took_ms, is_ahead, wait, growth, item
FROM unnest($2, $3) AS part (first, behind) JOIN tasks ON position >= first AND position < behind
WHERE run_no = $1 ORDER BY position;

-- name: tasks_all
-- Returns every task of runs that are being reopened. Uses the primary key.
SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ANY ($1) ORDER BY run_no, position;

-- name: tasks_held
-- Returns the claims of a session. Excludes quarantined runs. Tasks claimed ahead come last: they
-- never had a place, so the caller handles them after it has freed the places of the others.
-- Index: tasks_held.
SELECT run_no, runs.id, position, attempt, attempt + given_back FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY run_no, is_ahead AND tasks.started_at IS NULL, position;

-- name: tasks_lock
-- Blocks all claims of tasks of these runs, for an operation that lost a row to a claim before. The
-- caller holds the locks of the runs: all operations lock runs before tasks. Uses the primary key.
SELECT 1 FROM tasks WHERE run_no = ANY ($1) AND status IN ('pending', 'available') ORDER BY run_no, position FOR UPDATE;

-- name: tasks_orphaned
-- Returns tasks of a run whose session was reaped while the run was in quarantine. Uses the primary
-- key.
SELECT position, attempt, session, coalesce(node, 'unknown'), attempt + given_back FROM tasks
WHERE run_no = $1 AND status = 'running' AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = tasks.session)
ORDER BY position;

-- name: tasks_running
-- Returns the claimed tasks of runs. The first condition on the status makes the index usable; it
-- also covers available tasks.
-- Index: tasks_live.
SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ANY ($1) AND status IN ('available', 'running') AND status = 'running'
ORDER BY run_no, position;

-- name: tasks_unstarted
-- Returns the unclaimed tasks of runs, which a halt or a cancel ends at once. Uses the primary key.
SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ANY ($1) AND status IN ('pending', 'available', 'parked') ORDER BY run_no, position;

-- name: tasks_waiting
-- Returns the next tasks that wait for `max_parallel`, up to `number` in each run. The last column
-- shows whether a session accepts the task.
-- Index: tasks_waiting.
SELECT task.* FROM unnest($1, $2) AS wanted (run_no, number)
CROSS JOIN LATERAL (
    SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence,
       CASE WHEN class >= 0 THEN EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) END
    FROM tasks WHERE tasks.run_no = wanted.run_no AND gate = 'max_parallel' ORDER BY rank, position LIMIT wanted.number
) AS task
ORDER BY task.run_no, task.rank, task.position;
