-- The first run at or above a number, and when it was submitted. Along the primary key.
SELECT no, submitted_at FROM runs WHERE no >= ?1 ORDER BY no LIMIT 1;
