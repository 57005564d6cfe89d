-- Picks and takes tasks in one statement, oldest first, and mints their attempts: up to $4 that are available, and up to $5
-- more ahead, which may be waiting for `max_parallel`; they keep their rank, and are marked: until their holder says that
-- it has started, they wait as before to everybody else. Rows that somebody else has in hand are passed over, so that
-- nobody waits, and nothing is locked behind them. The line is followed up to the first that must not be held ahead ($6,
-- or one whose last attempt still shows): to pass that over would let it wait for ever.
-- Runs that this one has started are of its class, and are claimed with it; nothing of them is held ahead.
-- A session that is over, or whose lease has ended, gets nothing; a run that is set aside gives nothing.
-- What is available is walked from behind the place $8, $9, $10 (rank, run, position): the head of the line, unless
-- the server cannot remove dead rows (claim_cursor.rs).
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
