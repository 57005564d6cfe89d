-- The packed layer of a task, where it is small. Along the primary key.
SELECT packed FROM layers WHERE run_no = $1 AND position = $2 AND hash = $3;
