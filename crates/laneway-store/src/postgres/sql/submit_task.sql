-- Tasks of runs that are being submitted.
INSERT INTO tasks (run_no, position, class, status, gate, rank, reason, detail, finished_at)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9);
