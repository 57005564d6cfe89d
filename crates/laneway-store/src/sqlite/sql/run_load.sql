-- Everything of a run that verbs change.
SELECT status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled
FROM runs WHERE no = ?1;
