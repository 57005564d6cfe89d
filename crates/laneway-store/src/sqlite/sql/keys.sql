-- name: key_awaited
-- Reports whether another task waits at a key with a wake-up time.
-- Index: tasks_at_key.
SELECT 1 FROM tasks WHERE gate_key = ?1 AND wake_at IS NOT NULL AND NOT (run_no = ?2 AND position = ?3) LIMIT 1;

-- name: key_before
-- Reports whether a task waits at a key ahead of the given task.
-- Index: tasks_at_key.
SELECT 1 FROM tasks
WHERE gate_key = ?1 AND (rank, run_no, position) < (?2, ?3, ?4) AND run_no NOT IN (SELECT run_no FROM quarantine) LIMIT 1;

-- name: key_free
-- Releases a key that a task holds.
DELETE FROM holds WHERE key = ?1 AND run_no = ?2 AND position = ?3;

-- name: key_held_by
-- Returns the holders of a key, oldest first.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, runs.workflow, runs.version
FROM holds
JOIN tasks ON tasks.run_no = holds.run_no AND tasks.position = holds.position
JOIN runs ON runs.no = holds.run_no
WHERE holds.key = ?1 ORDER BY tasks.started_at IS NULL, tasks.started_at, holds.run_no, holds.position LIMIT ?2;

-- name: key_hold
-- Acquires a key for a task.
INSERT INTO holds (key, run_no, position) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: key_holders
-- Counts the tasks that hold a key. No lock is necessary: SQLite has a single writer.
SELECT count(*) FROM holds WHERE key = ?1;

-- name: key_next
-- Returns the first task in the queue of a key. Excludes quarantined runs.
-- Index: tasks_at_key.
SELECT run_no, position FROM tasks
WHERE gate_key = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY rank, run_no, position LIMIT 1;

-- name: limit
SELECT value FROM limits WHERE name = ?1;

-- name: limit_set
-- Sets a named limit for all runs.
INSERT INTO limits (name, value, set_by, set_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, set_by = excluded.set_by, set_at = excluded.set_at;

-- name: order_leave
-- Removes an ended task from its order. Larger versions no longer wait for it.
DELETE FROM orders WHERE key = ?1 AND version = ?2 AND run_no = ?3 AND position = ?4;

-- name: order_next
-- Returns the task whose turn it is on an order key: the smallest version at the gate `order`.
-- Excludes quarantined runs.
SELECT tasks.run_no, tasks.position
FROM orders JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
WHERE orders.key = ?1 AND tasks.gate = 'order' AND tasks.run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY orders.version, tasks.rank, tasks.run_no, tasks.position LIMIT 1;

-- name: order_smaller
-- Counts unended tasks with a smaller version on a key. The count stops at ?3.
SELECT count(*) FROM (SELECT 1 FROM orders WHERE key = ?1 AND version < ?2 LIMIT ?3);

-- name: order_stand
-- Registers a task in its order until it ends.
INSERT INTO orders (key, version, run_no, position) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING;

-- name: rate
-- Returns the theoretical arrival time of a rate: when the next task may pass.
SELECT tat FROM keys WHERE name = ?1;

-- name: rate_pass
-- Records the passage of a rate.
INSERT INTO keys (name, tat) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET tat = excluded.tat;

-- name: run_held_up
-- Returns what may hold up a whole run. Pauses do not hold up a run that is being canceled or has
-- timed out.
SELECT status, CASE WHEN closing IN ('canceled', 'run_timeout') THEN NULL ELSE pauses END, owner, not_before FROM runs WHERE no = ?1;

-- name: run_in_line
-- Reports whether a run, or any of its tasks, waits in a queue together with other runs.
SELECT EXISTS (SELECT 1 FROM runs WHERE no = ?1 AND status = 'queued')
    OR EXISTS (SELECT 1 FROM tasks WHERE run_no = ?1 AND gate_key IS NOT NULL);

-- name: run_place
-- Counts queued runs of a workflow: those before a run, and all. Excludes runs with a later start
-- time.
-- Index: runs_queued.
SELECT count(*) FILTER (WHERE no < ?2), count(*) FROM runs
WHERE workflow = ?1 AND status = 'queued' AND is_visible = 1 AND not_before IS NULL;
