-- What a run counts for each of its needs sets.
SELECT set_no, unsettled, succeeded, failed, passed_over FROM needs_sets WHERE run_no = $1 ORDER BY set_no;
