-- Whether there are more runs than so many. Along the primary key.
SELECT 1 FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT 1 OFFSET ?1;
