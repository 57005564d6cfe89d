-- Pieces of logs, of however many attempts, by whom these are still held: task, claim generation, session and `running` as of this
-- statement. A piece that is there was said before, and its answer was lost; said again it may have grown. Says which claims are
-- still good.
-- Index: tasks_pkey.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)
        AS given (run_no, position, generation, session, start, length, bytes)
),
held AS MATERIALIZED (
    SELECT given.*, tasks.attempt FROM given JOIN tasks USING (run_no, position)
    WHERE tasks.status = 'running' AND tasks.attempt + tasks.given_back = given.generation AND tasks.session = given.session
),
added AS (
    INSERT INTO log_chunks (run_no, position, attempt, start, length, bytes)
    SELECT run_no, position, attempt, start, length, bytes FROM held
    ON CONFLICT (run_no, position, attempt, start) DO UPDATE SET length = excluded.length, bytes = excluded.bytes
    WHERE excluded.length > log_chunks.length
)
SELECT DISTINCT run_no, position, generation, session FROM held;
