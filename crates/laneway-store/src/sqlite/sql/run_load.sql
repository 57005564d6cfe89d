-- Everything of a run that verbs change, and whether it is set aside. One whose removal has begun is gone for everybody, also
-- for a process that knew it before; one that is being submitted is there for who submits it.
SELECT status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled, pauses, levels,
       not_before, EXISTS (SELECT 1 FROM quarantine WHERE run_no = ?1)
FROM runs WHERE no = ?1 AND (is_visible = 1 OR finished_at IS NULL);
