-- Runs that have not ended, by what they do. Locks nothing. Index: runs_unfinished.
SELECT count(*) FILTER (WHERE status = 'running' AND pauses IS NULL), count(*) FILTER (WHERE status = 'queued' AND pauses IS NULL),
       count(*) FILTER (WHERE pauses IS NOT NULL)
FROM runs WHERE status IN ('queued', 'running') AND is_visible;
