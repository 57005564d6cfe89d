-- name: attempt_ended
-- Records ended attempts. The primary key rejects a second end of the same attempt.
INSERT INTO attempts
    (run_no, position, attempt, session, node, outcome, reason, detail, exit_code, started_at, finished_at, took_ms,
     given_back)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: attempt_known
-- Returns outcomes that claims have recorded, so that a repeated finish reports the same outcome.
-- The generation excludes an earlier claim of the same session that was given back, whose attempt
-- number was reused. Uses the primary key.
SELECT run_no, position, attempt, session, outcome, generation
FROM attempts JOIN unnest($1, $2, $3, $4, $5) AS said (run_no, position, attempt, session, generation)
     USING (run_no, position, attempt, session)
WHERE attempts.attempt + attempts.given_back = said.generation;

-- name: claim
-- Claims tasks of run $1 and of its child runs, oldest first, and numbers their attempts. Child
-- runs have the class of the run, so that the worker claims them with it. Parameters:
-- - $4: maximum number of available tasks
-- - $5: maximum number of further tasks to claim ahead; these may wait for `max_parallel`
-- - $6: positions that must not be claimed ahead
-- - $8, $9, $10: rank, run and position after which the walk of available tasks begins
-- A task claimed ahead keeps its rank and is marked. Until its holder reports the start, it still
-- counts as waiting. The claim ends at the first task that must not be claimed ahead. That is a
-- position in $6, or a row that still shows its last attempt. Passing that task over would starve
-- it. Tasks of child runs are never claimed ahead. SKIP LOCKED passes over rows that another
-- transaction holds, so that no claim waits. The claim takes no further locks. A session that is
-- over or expired claims nothing. A quarantined run yields nothing. The walk begins at the head of
-- the queue, unless the server cannot remove dead rows (claim_cursor.rs).
-- Index: tasks_available, and tasks_waiting.
WITH holder AS MATERIALIZED (
    SELECT 1 FROM sessions
    WHERE id = $3 AND expires_at > coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
      AND NOT EXISTS (SELECT 1 FROM quarantine WHERE run_no = $1)
),
available AS MATERIALIZED (
    SELECT run_no, position, rank, true AS is_available, run_no = $1 AS is_clean FROM tasks
    WHERE status = 'available' AND class = $2 AND EXISTS (SELECT 1 FROM holder) AND (rank, run_no, position) > ($8, $9, $10)
      AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine))
      AND (run_no = $1 OR EXISTS (SELECT 1 FROM runs WHERE runs.no = tasks.run_no AND runs.owner = $3))
    ORDER BY rank, run_no, position LIMIT $4 + $5 FOR UPDATE SKIP LOCKED
),
waiting AS MATERIALIZED (
    SELECT run_no, position, rank, false AS is_available,
           reason IS NULL AND node IS NULL AND started_at IS NULL AS is_clean
    FROM tasks
    WHERE run_no = $1 AND gate = 'max_parallel' AND EXISTS (SELECT 1 FROM holder)
      AND NOT EXISTS (SELECT 1 FROM runs WHERE no = $1 AND pauses IS NOT NULL)
    ORDER BY rank, position
    LIMIT greatest(0, least($5, $4 + $5 - (SELECT count(*) FROM available))) FOR UPDATE SKIP LOCKED
),
line AS (
    SELECT *, row_number() OVER (ORDER BY is_available DESC, rank, run_no, position) AS place
    FROM (SELECT * FROM available UNION ALL SELECT * FROM waiting) AS both_lines
),
barred AS (
    SELECT *, bool_or(NOT (is_available AND place <= $4) AND NOT (is_clean AND position <> ALL ($6)))
              OVER (ORDER BY place) AS is_barred
    FROM line
)
UPDATE tasks
SET status = 'running', gate = NULL, attempt = attempt + 1, session = $3, is_ahead = (tasks.status = 'pending')
FROM barred
WHERE NOT is_barred AND tasks.run_no = barred.run_no AND tasks.position = barred.position
RETURNING tasks.position, tasks.attempt, place,
          CASE WHEN tasks.run_no <> $1 THEN (SELECT id FROM runs WHERE no = tasks.run_no) END, tasks.run_no,
          tasks.attempt + tasks.given_back,
          tasks.start_by - coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
          CASE WHEN NOT tasks.is_ahead THEN tasks.rank END;

-- name: claim_left
-- Reports whether a task remains that a session accepts and has room for. If an earlier claim got
-- less than requested, other transactions hold those rows. $2 to $6 set where the queue of each
-- class begins, as in `claim_shared`. The query walks the index in order, as in `claim_shared`.
-- Index: tasks_available, takers_of_session and tasks_held.
SELECT EXISTS (
    SELECT 1 FROM takers
    LEFT JOIN unnest($3, $4, $5, $6) AS line_start (class, after_rank, after_run, after_position) USING (class)
    CROSS JOIN LATERAL (
        SELECT 1 FROM tasks
        WHERE status = 'available' AND tasks.class = takers.class
          AND (rank, run_no, position) > (coalesce(after_rank, $2), coalesce(after_run, -9223372036854775808),
                                          coalesce(after_position, -9223372036854775808))
          AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine))
        ORDER BY rank, run_no, position LIMIT 1
    ) AS next
    WHERE takers.session = $1
      AND (places IS NULL OR places > (
          SELECT count(*) FROM tasks JOIN takers AS same ON same.class = tasks.class AND same.session = $1
          WHERE tasks.status = 'running' AND tasks.session = $1 AND same.pool = takers.pool))
);

-- name: claim_shared
-- Claims tasks of all classes that session $1 accepts, in queue order, and numbers their attempts.
-- Parameters:
-- - $2: maximum number of tasks
-- - $4: maximum number of further tasks to claim ahead
-- - $5: versions whose every step may be claimed ahead
-- - $6: rank after which every other queue begins
-- - $7 to $10: class, rank, run and position after which the queue of a class begins
-- The claim ends at the first task that must not be claimed ahead: passing it over would starve it.
-- SKIP LOCKED passes over rows that another transaction holds, so that no claim waits. The claim
-- takes no further locks.
-- A pool yields at most its places less the tasks that the session holds in it, over all its
-- classes. Further tasks stay for other sessions and occupy no slot here. Two concurrent claims of
-- a session may take a task too many; it waits for its container. A session that is over or expired
-- claims nothing. A quarantined run yields nothing.
-- The first row of each run carries the parts that never change, as in `run_head`. Each queue
-- begins at its head, unless the server cannot remove dead rows (claim_cursor.rs).
-- The queue must stay an ordered walk along the index. If the planner expects a single row, it
-- sorts all available tasks instead. It does so after an anti-join with `quarantine`. `+ 0` hides
-- the statistics of the column from the planner.
-- Index: tasks_available, takers_of_session, and tasks_held.
WITH holder AS MATERIALIZED (
    SELECT class, delay, pool,
           CASE WHEN places IS NOT NULL THEN places - (
               SELECT count(*) FROM tasks JOIN takers AS same ON same.class = tasks.class AND same.session = $1
               WHERE tasks.status = 'running' AND tasks.session = $1 AND same.pool = takers.pool) END AS room,
           coalesce(after_rank, $6) AS after_rank, coalesce(after_run, -9223372036854775808) AS after_run,
           coalesce(after_position, -9223372036854775808) AS after_position
    FROM takers LEFT JOIN unnest($7, $8, $9, $10) AS line_start (class, after_rank, after_run, after_position) USING (class)
    WHERE session = $1
      AND EXISTS (SELECT 1 FROM sessions WHERE id = $1
                  AND expires_at > coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
),
line AS MATERIALIZED (
    SELECT next.*, rank + delay AS turn, pool, room FROM holder CROSS JOIN LATERAL (
        SELECT run_no, position, rank FROM tasks
        WHERE status = 'available' AND tasks.class = holder.class AND coalesce(holder.room, 1) > 0
          AND (rank, run_no, position) > (holder.after_rank, holder.after_run, holder.after_position)
          AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine))
        ORDER BY rank, run_no, position
        LIMIT greatest(0, least($2 + $4, coalesce(holder.room, $2 + $4))) FOR UPDATE SKIP LOCKED
    ) AS next
),
roomy AS (
    SELECT line.*, row_number() OVER (PARTITION BY pool ORDER BY turn, run_no, position) AS place_in_pool
    FROM line
),
placed AS (
    SELECT run_no, position, turn, row_number() OVER (ORDER BY turn, run_no, position) AS place,
           row_number() OVER (PARTITION BY run_no ORDER BY turn, position) AS place_in_run
    FROM roomy WHERE pool IS NULL OR place_in_pool <= room
),
barred AS (
    SELECT placed.*, head.*, bool_or(place > $2 AND version <> ALL ($5)) OVER (ORDER BY place) AS is_barred
    FROM placed CROSS JOIN LATERAL (
        SELECT id, version, dir, params, max_parallel, placement, submitted_from, class AS whole, bundle, parent, root_no, no_cache
        FROM runs WHERE no = placed.run_no LIMIT 1
    ) AS head
)
UPDATE tasks
SET status = 'running', gate = NULL, attempt = attempt + 1, session = $1, is_ahead = false
FROM barred
WHERE place <= $2 + $4 AND NOT is_barred AND tasks.run_no = barred.run_no AND tasks.position = barred.position
RETURNING tasks.run_no, CASE WHEN place_in_run = 1 THEN version END, dir, CASE WHEN place_in_run = 1 THEN params END,
          barred.max_parallel, placement, submitted_from, whole, bundle, parent, root_no, no_cache, id, tasks.position, tasks.attempt, place,
          tasks.attempt + tasks.given_back,
          tasks.start_by - coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
          tasks.class, tasks.rank;

-- name: claim_walk
-- Returns how many entries of tasks_available the scans of this connection have read, and the time
-- in microseconds. Dead entries count. The server resets the count when it collects statistics. The
-- difference between two calls is the cost of the claim between them.
SELECT pg_stat_get_xact_tuples_returned('tasks_available'::regclass), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: first_starts
-- Returns when the first attempt of each run started. Task rows keep only the start of the last
-- attempt. Uses the primary key.
SELECT run.no, first.at FROM unnest($1) AS run (no)
CROSS JOIN LATERAL (
    SELECT at FROM events WHERE run_no = run.no AND name = 'task_started' ORDER BY seq LIMIT 1
) AS first;

-- name: level_alive
-- Reports whether a session is alive, and keeps it so until the transaction ends. The reaper waits
-- meanwhile and then finds the complete level. Lock order: sessions before runs.
SELECT 1 FROM sessions
WHERE id = $1 AND expires_at > coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FOR SHARE;

-- name: positions_live
-- Returns the positions of live tasks of a run.
-- Index: tasks_live.
SELECT position FROM tasks WHERE run_no = $1 AND status IN ('available', 'running') ORDER BY position;

-- name: start
-- Records that the holders of claims have started. A separate statement: no index contains these
-- columns, so the server keeps the row on its page. The WHERE clause is the fence. As in
-- `task_save`, the division fails if a row has changed since it was read.
WITH saved AS (
    UPDATE tasks
    SET started_at = made.started_at, node = made.node
    FROM unnest($1, $2, $3, $4, $5, $6, $7)
         AS made (run_no, position, was_status, was_generation, was_session, started_at, node)
    WHERE tasks.run_no = made.run_no AND tasks.position = made.position AND tasks.status = made.was_status
      AND tasks.attempt + tasks.given_back = made.was_generation AND tasks.session IS NOT DISTINCT FROM made.was_session
    RETURNING 1
)
SELECT 1 / (SELECT count(*) = cardinality($1) FROM saved)::int;

-- name: task_gates
-- Returns the gate of each task of a run, in plan order. In a shared run ($2), an available task
-- whose class no session accepts is reported at the gate `node`. The row itself does not record
-- that. Uses the primary key.
SELECT CASE WHEN is_ahead AND started_at IS NULL THEN 'max_parallel'
            WHEN $2 AND status = 'available' AND NOT EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) THEN 'node'
            ELSE gate END, class, wake_at, gate_key, position, item
FROM tasks WHERE run_no = $1 ORDER BY position;

-- name: task_gates_part
-- Returns the same as `task_gates`, for ranges of positions (from $3 on, before $4). Uses the
-- primary key.
SELECT CASE WHEN is_ahead AND started_at IS NULL THEN 'max_parallel'
            WHEN $2 AND status = 'available' AND NOT EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) THEN 'node'
            ELSE gate END, class, wake_at, gate_key, position, item
FROM unnest($3, $4) AS part (first, behind) JOIN tasks ON position >= first AND position < behind
WHERE run_no = $1 ORDER BY position;

-- name: tasks_for_session
-- Returns tasks at the gate `node` whose class this session accepts. Excludes quarantined runs.
-- Index: takers_of_session, tasks_for_nodes.
SELECT run_no, runs.id, position FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE gate = 'node' AND tasks.class IN (SELECT class FROM takers WHERE session = $1 AND class > 0)
AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY run_no, rank, position;
