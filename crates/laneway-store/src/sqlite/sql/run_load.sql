-- Everything of a run that verbs change, and whether it is set aside.
SELECT status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled, pauses,
       EXISTS (SELECT 1 FROM quarantine WHERE run_no = ?1)
FROM runs WHERE no = ?1;
