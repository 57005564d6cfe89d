-- The audit log in front of a number, newest first, along the primary key.
SELECT seq, at, by, act, what, origin FROM audit WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2;
