-- What became of an effect, said by the execution that was let begin, while its attempt holds the task: the fence is asked of the
-- record and of the task. Whether the session is alive is not: a result that arrives before anybody reaped is good. As in
-- task_save.sql, the division fails the whole transaction, events included, if nothing was written.
WITH written AS (
    UPDATE effects
    SET status = $6, finished_at = $7, took_ms = $8, exit_code = $9, stdout = $10, output = $11, lacks = $12
    WHERE run_no = $1 AND position = $2 AND name = $13 AND key = $14
      AND status = 'started' AND session = $4 AND execution = $5
      AND EXISTS (SELECT 1 FROM tasks
                  WHERE run_no = $1 AND position = $2 AND status = 'running' AND attempt + given_back = $3 AND session = $4
                    AND tasks.attempt = effects.attempt)
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM written)::int;
