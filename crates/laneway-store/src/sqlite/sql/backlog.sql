-- Tasks of runs that have not ended and that nobody has taken, by what they wait for. Reads what these runs have, and
-- nothing of those that have ended. Index: runs_unfinished.
SELECT tasks.gate, count(*) FROM runs CROSS JOIN tasks ON tasks.run_no = runs.no
WHERE runs.status IN ('queued', 'running') AND runs.is_visible = 1 AND tasks.status IN ('pending', 'available')
GROUP BY tasks.gate ORDER BY tasks.gate;
