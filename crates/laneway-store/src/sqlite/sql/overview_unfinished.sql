-- Runs that have not ended, by what they do, of the newest ?1; and how many those are. Index: runs_unfinished.
SELECT count(*) FILTER (WHERE status = 'running' AND pauses IS NULL), count(*) FILTER (WHERE status = 'queued' AND pauses IS NULL),
       count(*) FILTER (WHERE pauses IS NOT NULL), count(*)
FROM (
    SELECT status, pauses FROM runs INDEXED BY runs_unfinished
    WHERE status IN ('queued', 'running') AND is_visible = 1 ORDER BY no DESC LIMIT ?1
);
