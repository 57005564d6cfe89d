-- Keeps everybody from claiming anything of these runs: for a verb that lost a row to a claim before. Behind the runs'
-- locks, in the order of all verbs. Along the primary key.
SELECT 1 FROM tasks WHERE run_no = ANY ($1) AND status IN ('pending', 'available') ORDER BY run_no, position FOR UPDATE;
