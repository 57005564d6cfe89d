-- Picks and takes tasks in one statement, first in line first, of all classes that a session takes, and mints their
-- attempts: up to $2, and up to $4 more ahead, of versions whose every step may be held unstarted ($5). The line is
-- followed up to the first that may not: to pass that over would let it wait for ever. Rows that somebody else has in
-- hand are passed over, so that nobody waits, and nothing is locked behind them.
-- Of a pool it takes no more than that has places, less what it holds of it, whatever their classes: the rest is left to others, and
-- holds no slot here. Two calls of one session at once may take one too many, which waits there for its container.
-- A session that is over, or whose lease has ended, gets nothing; a run that is set aside gives nothing.
-- The first row of each run has what never changes of it, as in run_head.sql.
-- The line of a class begins behind its place in $7 to $10 (class, rank, run, position), else behind rank $6: the head of
-- each line, unless the server cannot remove dead rows (claim_cursor.rs).
-- Index: tasks_available, takers_of_session, and tasks_held. The line is an ordered walk along the index, and must stay one: where the
-- planner expects a single row it sorts everything that is available instead. Behind an anti-join with `quarantine` it
-- does, and `+ 0` hides from it what it knows of the column.
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
