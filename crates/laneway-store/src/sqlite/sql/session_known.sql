-- Whether a session is known: one that was reaped never comes back.
SELECT 1 FROM sessions WHERE id = ?1;
