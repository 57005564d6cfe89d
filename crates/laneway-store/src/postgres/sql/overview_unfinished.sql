-- Runs that have not ended, by what they do, of the newest $1; and how many those are. Locks nothing. Index: runs_unfinished.
SELECT count(*) FILTER (WHERE status = 'running' AND pauses IS NULL), count(*) FILTER (WHERE status = 'queued' AND pauses IS NULL),
       count(*) FILTER (WHERE pauses IS NOT NULL), count(*)
FROM (
    SELECT status, pauses FROM runs
    WHERE status IN ('queued', 'running') AND is_visible ORDER BY no DESC LIMIT $1
) AS newest;
