-- The holders of claims say that they have started. A statement of its own: these columns stand in no index, so that the
-- row stays on its page. The WHERE is the fence; as in task_save.sql, the division fails if a row is not as it was seen.
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
