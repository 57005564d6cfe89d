-- name: key_awaited
-- Reports for each key whether another task waits at it with a wake-up time.
-- Index: tasks_at_key.
SELECT asked.key, asked.run_no, asked.position,
       EXISTS (SELECT 1 FROM tasks WHERE gate_key = asked.key AND wake_at IS NOT NULL
               AND NOT (tasks.run_no = asked.run_no AND tasks.position = asked.position))
FROM unnest($1, $2, $3) AS asked (key, run_no, position);

-- name: key_free
-- Releases keys that tasks hold.
DELETE FROM holds USING unnest($1, $2, $3) AS freed (key, run_no, position)
WHERE holds.key = freed.key AND holds.run_no = freed.run_no AND holds.position = freed.position;

-- name: key_held_by
-- Returns the holders of a key, oldest first.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, runs.workflow, runs.version
FROM holds
JOIN tasks ON tasks.run_no = holds.run_no AND tasks.position = holds.position
JOIN runs ON runs.no = holds.run_no
WHERE holds.key = $1 ORDER BY tasks.started_at NULLS LAST, holds.run_no, holds.position LIMIT $2;

-- name: key_hold
-- Acquires keys for tasks.
INSERT INTO holds (key, run_no, position) SELECT * FROM unnest($1, $2, $3) ON CONFLICT DO NOTHING;

-- name: key_next
-- Returns the first task in the queue of a key. Excludes quarantined runs.
-- Index: tasks_at_key.
SELECT run_no, runs.id, position FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE gate_key = $1 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY rank, run_no, position LIMIT 1;

-- name: key_state
-- Returns the state of locked keys: the number of holders, the follow-ups that record a release,
-- and the first task in the queue. Excludes quarantined runs. A single statement reads all of it as
-- of the same moment. Uses the primary key of `holds`, follow_ups_by_subject and tasks_at_key.
SELECT asked.key,
       (SELECT count(*) FROM holds WHERE holds.key = asked.key),
       ARRAY(SELECT seq FROM follow_ups WHERE kind = 'key' AND subject = asked.key),
       head.rank, head.run_no, head.position
FROM unnest($1) AS asked (key)
LEFT JOIN LATERAL (
    SELECT tasks.rank, tasks.run_no, tasks.position FROM tasks
    WHERE tasks.gate_key = asked.key
      AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no)
    ORDER BY tasks.rank, tasks.run_no, tasks.position LIMIT 1
) AS head ON true;

-- name: keys_lock
-- Locks keys in the order of their names, and inserts a row for each key without a row. A single
-- statement: rows inserted before others are locked would be held out of order. `WHERE false` locks
-- the conflicting row and leaves it unchanged. The caller counts holders in the next statement. In
-- this statement the count would be as of before the wait, and a key would be over-granted.
INSERT INTO keys (name) SELECT name FROM unnest($1) AS wanted (name) ORDER BY name
ON CONFLICT (name) DO UPDATE SET tat = keys.tat WHERE false;

-- name: limit
SELECT name, value FROM limits WHERE name = ANY ($1);

-- name: limit_declare
-- Adds limits that a document declares and the store lacks. Inserts in the order of names, so that
-- two documents with the same limits do not deadlock.
INSERT INTO limits (name, value, set_by, set_at)
SELECT name, value, $3, $4 FROM unnest($1, $2) AS declared (name, value) ORDER BY name
ON CONFLICT DO NOTHING;

-- name: limit_lock
-- Locks a limit before its removal. Concurrent submissions wait and then find it gone.
SELECT name FROM limits WHERE name = $1 FOR UPDATE;

-- name: limit_set
-- Sets a named limit for all runs.
INSERT INTO limits (name, value, set_by, set_at)
VALUES ($1, $2, $3, coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (name) DO UPDATE SET value = excluded.value, set_by = excluded.set_by, set_at = excluded.set_at;

-- name: limits_named
-- Returns limits that a submission names. FOR KEY SHARE blocks their removal until the transaction
-- ends.
SELECT name, value FROM limits WHERE name = ANY ($1) ORDER BY name FOR KEY SHARE;

-- name: order_leave
-- Removes ended tasks from their orders. Larger versions no longer wait for them.
DELETE FROM orders USING unnest($1, $2, $3, $4) AS ended (key, version, run_no, position)
WHERE orders.key = ended.key AND orders.version = ended.version AND orders.run_no = ended.run_no
  AND orders.position = ended.position;

-- name: order_next
-- Returns the task whose turn it is on an order key: the smallest version at the gate `order`.
-- Excludes quarantined runs.
SELECT tasks.run_no, runs.id, tasks.position
FROM orders JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
JOIN runs ON runs.no = tasks.run_no
WHERE orders.key = $1 AND tasks.gate = 'order'
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY orders.version, tasks.rank, tasks.run_no, tasks.position LIMIT 1;

-- name: order_smaller
-- Counts unended tasks with a smaller version, for each version on its key. Each count stops at
-- `up_to`.
SELECT asked.key, asked.version, asked.up_to,
       (SELECT count(*) FROM (SELECT 1 FROM orders WHERE orders.key = asked.key AND orders.version < asked.version
                              LIMIT asked.up_to) AS smaller)
FROM unnest($1, $2, $3) AS asked (key, version, up_to);

-- name: order_stand
-- Registers tasks in their orders until they end.
INSERT INTO orders (key, version, run_no, position) SELECT * FROM unnest($1, $2, $3, $4) ON CONFLICT DO NOTHING;

-- name: rate
-- Returns the theoretical arrival time of rates: when the next task may pass.
SELECT name, tat FROM keys WHERE name = ANY ($1) AND tat IS NOT NULL;

-- name: rate_pass
-- Records the passage of rates. The caller holds the locks of their limits.
INSERT INTO keys (name, tat) SELECT * FROM unnest($1, $2) ON CONFLICT (name) DO UPDATE SET tat = excluded.tat;

-- name: run_held_up
-- Returns what may hold up a whole run, and the node of its owner. Pauses do not hold up a run that
-- is being canceled or has timed out.
SELECT status, CASE WHEN closing IN ('canceled', 'run_timeout') THEN NULL ELSE pauses END, (SELECT node FROM sessions WHERE sessions.id = owner), not_before FROM runs WHERE no = $1;

-- name: run_place
-- Counts queued runs of a workflow: those before a run, and all. Excludes runs with a later start
-- time.
-- Index: runs_queued.
SELECT count(*) FILTER (WHERE no < $2), count(*) FROM runs
WHERE workflow = $1 AND status = 'queued' AND is_visible AND not_before IS NULL;

-- name: runs_held_up
-- Returns those of the runs whose workflow has queued runs.
-- Index: runs_queued.
SELECT no FROM runs
WHERE no = ANY ($1) AND EXISTS (SELECT 1 FROM runs AS queued WHERE queued.workflow = runs.workflow AND queued.status = 'queued');
