-- Sets a countdown anew: at submit, and when a run is opened again.
INSERT INTO needs_sets (run_no, set_no, unsettled, succeeded, failed, passed_over)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (run_no, set_no) DO UPDATE
SET unsettled = excluded.unsettled, succeeded = excluded.succeeded,
    failed = excluded.failed, passed_over = excluded.passed_over;
