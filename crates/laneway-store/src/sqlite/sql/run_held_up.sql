-- What may hold up a run as a whole.
SELECT status, pauses, owner FROM runs WHERE no = ?1;
