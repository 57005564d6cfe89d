-- When the oldest of the newest was submitted, if there are so many. Along the primary key.
SELECT submitted_at FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT 1 OFFSET ?1;
