-- Picks and takes tasks in one statement, first in line first, of all classes that a session takes, and mints their
-- attempts. Rows that somebody else has in hand are passed over, so that nobody waits, and nothing is locked behind them.
-- A session that is over, or whose lease has ended, gets nothing; a run that is set aside gives nothing.
-- Index: tasks_available, and takers_of_session.
WITH holder AS MATERIALIZED (
    SELECT class, delay FROM takers
    WHERE session = $1
      AND EXISTS (SELECT 1 FROM sessions WHERE id = $1
                  AND expires_at > coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
),
line AS MATERIALIZED (
    SELECT next.*, rank + delay AS turn FROM holder CROSS JOIN LATERAL (
        SELECT run_no, position, rank FROM tasks
        WHERE status = 'available' AND tasks.class = holder.class
          AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no)
        ORDER BY rank, run_no, position LIMIT $2 FOR UPDATE OF tasks SKIP LOCKED
    ) AS next
),
first AS (SELECT *, row_number() OVER (ORDER BY turn, run_no, position) AS place FROM line)
UPDATE tasks
SET status = 'running', gate = NULL, attempt = attempt + 1, session = $1, is_ahead = false
FROM first
WHERE place <= $2 AND tasks.run_no = first.run_no AND tasks.position = first.position
RETURNING tasks.position, tasks.attempt, place, (SELECT id FROM runs WHERE no = tasks.run_no);
