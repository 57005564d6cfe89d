-- Tasks of a run that is being submitted. A run that is local to its owner is a class of its own.
INSERT INTO tasks (run_no, class, position, status, gate, rank, reason, detail, finished_at)
SELECT $1, -$1, made.* FROM unnest($2, $3, $4, $5, $6, $7, $8) AS made;
