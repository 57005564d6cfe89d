-- Tasks of runs that have not ended and that nobody has taken, by what they wait for. Reads what these runs have, and
-- nothing of those that have ended. Locks nothing. Index: runs_unfinished.
SELECT tasks.gate, count(*) FROM runs JOIN tasks ON tasks.run_no = runs.no
WHERE runs.status IN ('queued', 'running') AND runs.is_visible AND tasks.status IN ('pending', 'available')
GROUP BY tasks.gate ORDER BY tasks.gate COLLATE "C" NULLS FIRST;
