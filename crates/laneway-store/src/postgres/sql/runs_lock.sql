-- Locks runs, in the one order of all verbs. A statement of its own: what is read by the next one is read as of the lock,
-- while in this one it would be as of before the wait. Along the primary key.
SELECT no FROM runs WHERE no = ANY ($1) ORDER BY no FOR UPDATE;
