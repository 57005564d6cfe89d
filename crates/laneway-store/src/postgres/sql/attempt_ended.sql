-- Keeps attempts that have ended. Once: a second end of the same attempt breaks the primary key.
INSERT INTO attempts
    (run_no, position, attempt, session, node, outcome, reason, detail, exit_code, started_at, finished_at, took_ms,
     given_back)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);
