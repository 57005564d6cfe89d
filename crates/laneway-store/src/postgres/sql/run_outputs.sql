-- What the steps of a run have put out, up to a number of them ($2): items are not steps.
SELECT position, output FROM tasks WHERE run_no = $1 AND position < $2 AND output IS NOT NULL ORDER BY position;
