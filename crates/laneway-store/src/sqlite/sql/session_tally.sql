-- What a session has told of itself, and whether it lives by a lease.
SELECT tally, token IS NOT NULL FROM sessions WHERE id = ?1;
