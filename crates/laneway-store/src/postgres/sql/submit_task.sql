-- Tasks of a run that is being submitted.
INSERT INTO tasks (run_no, position, class, status, gate, rank, reason, detail, finished_at)
SELECT $1, made.* FROM unnest($2, $3, $4, $5, $6, $7, $8, $9) AS made;
