-- Whether there are more runs than so many. Along the primary key. Locks nothing.
SELECT 1 FROM runs WHERE is_visible ORDER BY no DESC LIMIT 1 OFFSET $1;
