-- What may hold up a run as a whole, and the node that owns it.
SELECT status, CASE WHEN closing IN ('canceled', 'run_timeout') THEN NULL ELSE pauses END, (SELECT node FROM sessions WHERE sessions.id = owner), not_before FROM runs WHERE no = $1;
