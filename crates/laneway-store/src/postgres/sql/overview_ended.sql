-- How runs ended since a moment, of the newest $2. Along the primary key. Locks nothing.
SELECT count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'canceled')
FROM (SELECT status, finished_at FROM runs WHERE is_visible ORDER BY no DESC LIMIT $2) AS newest
WHERE finished_at >= $1;
