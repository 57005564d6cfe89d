-- What may hold up a run as a whole.
SELECT status, pauses FROM runs WHERE no = $1;
