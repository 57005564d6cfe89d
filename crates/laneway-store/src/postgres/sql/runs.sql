-- Runs, newest first, from the newest on or behind one of them, along the primary key: it ends at the limit, and reads all
-- runs where few are like that.
-- Locks nothing.
SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement
FROM runs
WHERE is_visible AND ($1::text IS NULL OR status = $1) AND ($2::text IS NULL OR workflow = $2)
  AND ($4::text IS NULL OR no < (SELECT behind.no FROM runs AS behind WHERE behind.id = $4))
ORDER BY no DESC LIMIT $3;
