-- One predecessor of a needs set has settled; exactly one of ?3, ?4, ?5 is 1.
UPDATE needs_sets
SET unsettled = unsettled - 1, succeeded = succeeded + ?3, failed = failed + ?4, passed_over = passed_over + ?5
WHERE run_no = ?1 AND set_no = ?2;
