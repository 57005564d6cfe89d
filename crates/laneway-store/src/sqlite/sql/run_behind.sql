-- The run so many (?2) behind the newest, or behind one of them (?1), that one not counted. Along the primary key, from there on.
SELECT id, submitted_at FROM runs
WHERE is_visible = 1 AND no < CASE WHEN ?1 IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = ?1) END
ORDER BY no DESC LIMIT 1 OFFSET ?2;
