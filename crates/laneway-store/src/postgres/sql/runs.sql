-- Runs, newest first, from the newest on or behind one of them, down to one of them, along the primary key: it ends at the limit, and
-- reads all runs between the two where few are like that, and none beyond. Both bounds are written as one value each: with OR they
-- would be looked at run by run. One that is not there any more is NULL, and nothing is found. $1: states; $7: how a run's id, its end or its workflow
-- begins; $8: down to this one.
-- Locks nothing.
SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
       closing, pauses, not_before
FROM runs
WHERE is_visible AND ($1::text[] IS NULL OR status = ANY ($1)) AND $2::text IS NULL
  AND no < CASE WHEN $4::text IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = $4) END
  AND no >= CASE WHEN $8::text IS NULL THEN 0 ELSE (SELECT last.no FROM runs AS last WHERE last.id = $8) END
  AND ($5::bigint IS NULL OR submitted_at >= $5) AND ($6::bigint IS NULL OR submitted_at < $6)
  AND ($7::text IS NULL OR starts_with(workflow, $7) OR starts_with(id, lower($7)) OR starts_with(tail, lower($7)))
ORDER BY no DESC LIMIT $3;
