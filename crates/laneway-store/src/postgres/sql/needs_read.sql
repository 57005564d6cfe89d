-- How the predecessors of needs sets stand. Along the primary key.
SELECT run_no, set_no, unsettled, succeeded, failed, passed_over
FROM needs_sets JOIN unnest($1, $2) AS wanted (run_no, set_no) USING (run_no, set_no);
