-- What may hold up a run as a whole.
SELECT status, CASE WHEN closing IN ('canceled', 'run_timeout') THEN NULL ELSE pauses END, owner, not_before FROM runs WHERE no = ?1;
