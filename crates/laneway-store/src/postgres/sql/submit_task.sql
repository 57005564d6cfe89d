-- Tasks of runs that are being submitted.
INSERT INTO tasks (run_no, position, class, status, gate, rank, reason, detail, finished_at, started_at, took_ms, wait, due_at, growth)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);
