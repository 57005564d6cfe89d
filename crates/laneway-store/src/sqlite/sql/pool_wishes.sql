-- What is wanted of the pools of a session, oldest first.
SELECT seq, name, warm, version FROM pool_wishes WHERE session = ?1 ORDER BY seq;
