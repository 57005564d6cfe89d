-- Locks a run that is to go. A statement of its own: whether it may is read as of the lock. One that somebody is at work on
-- is left for another time.
SELECT no FROM runs WHERE id = $1 FOR UPDATE SKIP LOCKED;
