-- name: attempt_ended
-- Records an ended attempt. The primary key rejects a second end of the same attempt.
INSERT INTO attempts
    (run_no, position, attempt, session, node, outcome, reason, detail, exit_code, started_at, finished_at,
     took_ms, given_back)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);

-- name: attempt_known
-- Returns the outcome that a claim has recorded, so that a repeated finish reports the same
-- outcome. The generation excludes an earlier claim of the same session that was given back, whose
-- attempt number was reused. Uses the primary key.
SELECT outcome FROM attempts WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4
  AND attempt + given_back = ?5;

-- name: claim
-- Claims a task for a session and numbers its attempt. SQLite has a single writer, so no other
-- claim can come in between; the condition repeats the check. A task that waits for `max_parallel`
-- keeps its rank and is marked. Until its holder reports the start, it still counts as waiting. A
-- session that is over, or whose lease has expired by now (?5), claims nothing. A quarantined run
-- yields nothing. No RETURNING: SQLite would build a temporary table for the single row, which
-- costs more than the rest.
UPDATE tasks
SET status = 'running', gate = NULL, attempt = attempt + 1, session = ?3, is_ahead = (status = 'pending')
WHERE run_no = ?1 AND position = ?2 AND attempt = ?4 AND (status = 'available' OR gate = 'max_parallel')
  AND EXISTS (SELECT 1 FROM sessions WHERE id = ?3 AND (expires_at IS NULL OR expires_at > ?5))
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE run_no = ?1);

-- name: claim_available
-- Returns the next claimable tasks of a class, in queue order. Tasks of quarantined runs do not
-- block the queue.
-- Index: tasks_available.
SELECT rank, run_no, position, attempt, given_back, start_by FROM tasks
WHERE status = 'available' AND class = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY rank, run_no, position LIMIT ?2;

-- name: claim_waiting
-- Returns the next tasks that wait for `max_parallel`. The last column shows that a task has no
-- trace of an earlier attempt.
-- Index: tasks_waiting.
SELECT position, attempt, given_back, reason IS NULL AND node IS NULL AND started_at IS NULL
FROM tasks WHERE run_no = ?1 AND gate = 'max_parallel' 
  AND NOT EXISTS (SELECT 1 FROM runs WHERE no = ?1 AND pauses IS NOT NULL)
ORDER BY rank, position LIMIT ?2;

-- name: first_start
-- Returns when the first attempt of a run started. Task rows keep only the start of the last
-- attempt. Uses the primary key.
SELECT at FROM events WHERE run_no = ?1 AND name = 'task_started' ORDER BY seq LIMIT 1;

-- name: positions_live
-- Returns the positions of live tasks of a run. INDEXED BY is necessary: the planner rates the
-- primary key as equal.
-- Index: tasks_live.
SELECT position FROM tasks INDEXED BY tasks_live
WHERE run_no = ?1 AND status IN ('available', 'running') ORDER BY position;

-- name: start
-- Records that the holder of a claim has started. A separate statement: an UPDATE that names an
-- indexed column rewrites that index. No index contains these columns. The WHERE clause is the
-- fence.
UPDATE tasks
SET started_at = ?6, node = ?7
WHERE run_no = ?1 AND position = ?2 AND status = ?3 AND attempt + given_back = ?4 AND session IS ?5;

-- name: task_gates
-- Returns the gate of each task of a run, in plan order. In a shared run (?2), an available task
-- whose class no session accepts is reported at the gate `node`. The row itself does not record
-- that. Uses the primary keys.
SELECT CASE WHEN is_ahead = 1 AND started_at IS NULL THEN 'max_parallel'
            WHEN ?2 AND status = 'available' AND NOT EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) THEN 'node'
            ELSE gate END, class, wake_at, position, item
FROM tasks WHERE run_no = ?1 ORDER BY position;

-- name: task_gates_part
-- Returns the same as `task_gates`, for positions from ?3 on and before ?4. Uses the primary keys.
SELECT CASE WHEN is_ahead = 1 AND started_at IS NULL THEN 'max_parallel'
            WHEN ?2 AND status = 'available' AND NOT EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) THEN 'node'
            ELSE gate END, class, wake_at, position, item
FROM tasks WHERE run_no = ?1 AND position >= ?3 AND position < ?4 ORDER BY position;

-- name: tasks_for_nodes
-- Returns tasks of a class at the gate `node`. Excludes quarantined runs.
-- Index: tasks_for_nodes.
SELECT run_no, position FROM tasks
WHERE gate = 'node' AND class = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, rank, position;
