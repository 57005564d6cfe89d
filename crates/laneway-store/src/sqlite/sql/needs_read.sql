-- How the predecessors of a needs set stand.
SELECT unsettled, succeeded, failed, passed_over FROM needs_sets WHERE run_no = ?1 AND set_no = ?2;
