-- Sets countdowns anew. The runs are locked.
INSERT INTO needs_sets (run_no, set_no, unsettled, succeeded, failed, passed_over)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_no, set_no) DO UPDATE
SET unsettled = excluded.unsettled, succeeded = excluded.succeeded,
    failed = excluded.failed, passed_over = excluded.passed_over;
