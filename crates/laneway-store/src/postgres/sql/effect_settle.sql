-- A person says what became of an effect, if it is still as it was seen. As in task_save.sql, the division fails the whole
-- transaction, events included, if it is not.
WITH written AS (
    UPDATE effects
    SET status = $5, finished_at = $6, settled_by = $7, took_ms = NULL, exit_code = $8, stdout = NULL, output = NULL,
        lacks = NULL
    WHERE run_no = $1 AND position = $2 AND name = $3 AND key = $4 AND execution = $9 AND status = $10
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM written)::int;
