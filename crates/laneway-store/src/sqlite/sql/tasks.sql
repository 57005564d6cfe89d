-- name: outputs
-- Returns the items of a step in their order, with status and output. Uses the primary key.
SELECT position, status, output FROM tasks
WHERE run_no = ?1 AND position >= ?2 AND position < ?3 AND item IS NOT NULL ORDER BY position;

-- name: scope
-- Returns what expressions can read of a step.
SELECT status, output FROM tasks WHERE run_no = ?1 AND position = ?2;

-- name: task
-- Returns every column of a task that changes.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ?1 AND position = ?2;

-- name: task_counts
-- Counts the tasks of a run by status. A claim that has not started counts under its earlier
-- status. A step that failed because of its items is not counted as failed: each failure counts
-- once. Also returns the first start of executed tasks. The attempt column is above 1 if a task had
-- an attempt before the attempt in its row.
SELECT CASE WHEN status <> 'running' OR started_at IS NOT NULL THEN status
            WHEN is_ahead = 1 THEN 'pending'
            ELSE 'available' END,
       count(*) FILTER (WHERE NOT (status = 'failed' AND reason IS 'items')),
       min(started_at) FILTER (WHERE wait IS NULL AND growth IS NULL), max(attempt + CASE WHEN started_at IS NULL THEN 1 ELSE 0 END),
       count(*)
FROM tasks WHERE run_no = ?1 GROUP BY 1;

-- name: task_counts_of_few
-- Returns the same as `task_counts`, from at most ?2 tasks of the run. Uses the primary key.
SELECT CASE WHEN status <> 'running' OR started_at IS NOT NULL THEN status
            WHEN is_ahead = 1 THEN 'pending'
            ELSE 'available' END,
       count(*) FILTER (WHERE NOT (status = 'failed' AND reason IS 'items')),
       min(started_at) FILTER (WHERE wait IS NULL AND growth IS NULL), max(attempt + CASE WHEN started_at IS NULL THEN 1 ELSE 0 END),
       count(*)
FROM (SELECT status, reason, started_at, is_ahead, wait, growth, attempt FROM tasks WHERE run_no = ?1 LIMIT ?2) GROUP BY 1;

-- name: task_gate_key
SELECT gate_key FROM tasks WHERE run_no = ?1 AND position = ?2;

-- name: task_save
-- Writes a task back as the gate keeper changed it. The WHERE clause is the fence: the row must be
-- as the keeper read it, and claims are checked against the same columns.
UPDATE tasks
SET status = ?6, gate = ?7, rank = ?8, run_at = ?9, attempt = ?10, retries = ?11, lost = ?12, session = ?13,
    is_ahead = ?14, node = ?15, stop = ?16, reason = ?17, detail = ?18, exit_code = ?19, output = ?20,
    started_at = ?21, took_ms = ?22, finished_at = ?23, gate_key = ?24, wake_at = ?25, class = ?26,
    wait = ?27, due_at = ?28, growth = ?29, given_back = ?30, start_by = ?31, fence = ?32
WHERE run_no = ?1 AND position = ?2 AND status = ?3 AND attempt + given_back = ?4 AND session IS ?5;

-- name: task_states_part
-- Returns the same as `task_states`, for positions from ?2 on and before ?3. Uses the primary key.
SELECT position, status, attempt, node, reason, detail, exit_code, output, run_at, started_at, finished_at,
       retries, lost, took_ms, is_ahead, wait, growth, item
FROM tasks WHERE run_no = ?1 AND position >= ?2 AND position < ?3 ORDER BY position;

-- name: tasks_all
-- Returns every task of a run that is being reopened.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ?1 ORDER BY position;

-- name: tasks_held
-- Returns the claims of a session. Excludes quarantined runs. Tasks claimed ahead come last: they
-- never had a place, so the caller handles them after it has freed the places of the others.
-- Index: tasks_held.
SELECT run_no, position, attempt, attempt + given_back FROM tasks
WHERE status = 'running' AND session = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, is_ahead = 1 AND started_at IS NULL, position;

-- name: tasks_orphaned
-- Returns tasks of a run whose session was reaped while the run was in quarantine. Uses the primary
-- key.
SELECT position, attempt, session, coalesce(node, 'unknown'), attempt + given_back FROM tasks
WHERE run_no = ?1 AND status IN ('available', 'running') AND session IS NOT NULL
  AND session NOT IN (SELECT id FROM sessions)
ORDER BY position;

-- name: tasks_running
-- Returns the claimed tasks of a run. The first condition on the status makes the index usable; it
-- also covers available tasks.
-- Index: tasks_live.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks INDEXED BY tasks_live
WHERE run_no = ?1 AND status IN ('available', 'running') AND status = 'running' ORDER BY position;

-- name: tasks_unstarted
-- Returns the unclaimed tasks of a run, which a halt or a cancel ends at once.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ?1 AND status IN ('pending', 'available', 'parked') ORDER BY position;

-- name: tasks_waiting
-- Returns the next tasks that wait for `max_parallel`.
-- Index: tasks_waiting.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ?1 AND gate = 'max_parallel' ORDER BY rank, position LIMIT ?2;
