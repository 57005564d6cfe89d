-- What a session has told of itself.
SELECT tally FROM sessions WHERE id = ?1;
