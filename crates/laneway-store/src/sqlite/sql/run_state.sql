-- The stored side of a replay: the run.
SELECT workflow, version, status, reason, closing, submitted_at, started_at, finished_at, last_event, pauses, levels,
       deadline_at, not_before
FROM runs WHERE no = ?1;
