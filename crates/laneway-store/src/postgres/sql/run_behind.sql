-- The run so many ($2) behind the newest, or behind one of them ($1), that one not counted. Along the primary key.
SELECT id, submitted_at FROM runs
WHERE is_visible AND ($1::text IS NULL OR no < (SELECT behind.no FROM runs AS behind WHERE behind.id = $1))
ORDER BY no DESC LIMIT 1 OFFSET $2;
