-- name: key_counts
-- Counts the holders of a key and the tasks that wait at it. Takes no locks.
-- Index: tasks_at_key.
SELECT (SELECT count(*) FROM holds WHERE key = $1), (SELECT count(*) FROM tasks WHERE gate_key = $1);

-- name: key_line
-- Returns every task that waits at a key, in queue order.
-- Index: tasks_at_key.
SELECT run_no, position FROM tasks WHERE gate_key = $1 ORDER BY rank, run_no, position;

-- name: key_queue
-- Returns the first $2 tasks that wait at a key, in queue order. Takes no locks.
-- Index: tasks_at_key.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, runs.workflow, runs.version, tasks.rank
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.gate_key = $1 ORDER BY tasks.rank, tasks.run_no, tasks.position LIMIT $2;

-- name: key_wake
-- Returns the earliest wake-up time among the tasks that wait at a key.
-- Index: tasks_at_key.
SELECT min(wake_at) FROM tasks WHERE gate_key = $1;

-- name: limit_remove
DELETE FROM limits WHERE name = $1;

-- name: limits
-- Lists named limits with the number of tasks that hold each and that wait at it.
SELECT name, value, set_by, set_at,
       (SELECT count(*) FROM holds WHERE holds.key = 'limit:' || limits.name),
       (SELECT count(*) FROM tasks WHERE tasks.gate_key = 'limit:' || limits.name)
FROM limits ORDER BY name;

-- name: locks
-- Returns up to $1 locks that a task holds or waits for, by name. Finds each name from the previous
-- name, so that the cost depends on the number of locks alone. The number of tasks at a lock does
-- not matter. `;` is the character after `:`, so the range is the prefix `lock:`. Takes no row
-- locks. Uses the primary key of `holds`.
-- Index: tasks_at_key.
WITH RECURSIVE named (key, place) AS (
    SELECT (SELECT min(key) FROM (
        SELECT min(key) AS key FROM holds WHERE key >= 'lock:' AND key < 'lock;'
        UNION ALL
        SELECT min(gate_key) FROM tasks WHERE gate_key >= 'lock:' AND gate_key < 'lock;'
    ) AS least), 1
    UNION ALL
    SELECT (SELECT min(key) FROM (
        SELECT min(key) AS key FROM holds WHERE key > named.key AND key < 'lock;'
        UNION ALL
        SELECT min(gate_key) FROM tasks WHERE gate_key > named.key AND gate_key < 'lock;'
    ) AS least), place + 1 FROM named WHERE key IS NOT NULL AND place < $1
)
SELECT substr(key, 6) FROM named WHERE key IS NOT NULL ORDER BY place;

-- name: order_before
-- Returns tasks with a smaller version on an order key, the smallest first.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, orders.version
FROM orders
JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
JOIN runs ON runs.no = orders.run_no
WHERE orders.key = $1 AND orders.version < $2 ORDER BY orders.version, orders.run_no, orders.position LIMIT $3;

-- name: order_keys
-- Returns up to $1 `order` keys in use, by name, with their number of tasks. Finds each name from
-- the previous name, so that the cost follows the size of the result. Takes no row locks. Uses the
-- primary key.
WITH RECURSIVE named (key, place) AS (
    SELECT (SELECT min(key) FROM orders), 1
    UNION ALL
    SELECT (SELECT min(orders.key) FROM orders WHERE orders.key > named.key), place + 1
    FROM named WHERE key IS NOT NULL AND place < $1
)
SELECT key, (SELECT count(*) FROM orders WHERE orders.key = named.key) FROM named WHERE key IS NOT NULL ORDER BY place;

-- name: order_line
-- Returns the first $2 tasks on an order key, smallest version first. The rank shows since when a
-- task waits for its turn; it is NULL for other tasks. Takes no row locks. Uses the primary key.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, runs.workflow, runs.version,
       CASE WHEN tasks.gate = 'order' THEN tasks.rank END, orders.version
FROM orders
JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
JOIN runs ON runs.no = orders.run_no
WHERE orders.key = $1 ORDER BY orders.version, orders.run_no, orders.position LIMIT $2;

-- name: run_is_hurried
-- Reports whether a run is being canceled and has no time left for clean-up. Its children then have
-- none either.
SELECT coalesce(closing IN ('canceled', 'run_timeout') AND deadline_at IS NULL, false) FROM runs WHERE id = $1;
