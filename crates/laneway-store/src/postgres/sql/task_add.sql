-- Tasks that were not there before: items of steps.
INSERT INTO tasks (run_no, position, class, status, gate, gate_key, wake_at, rank, attempt, reason, detail, finished_at, item,
                   started_at, took_ms, wait, due_at, given_back, start_by, fence)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20);
