-- What may hold up a run as a whole, and the node that owns it.
SELECT status, pauses, (SELECT node FROM sessions WHERE sessions.id = owner) FROM runs WHERE no = $1;
