-- How long all is that the steps of a run have put out.
SELECT coalesce(sum(length(output)), 0) FROM tasks WHERE run_no = ?1 AND position < ?2;
