-- name: wanted_runs
-- Returns child runs that are due to start, after the cursor ($4, $5). Any node starts the children
-- of shared runs; $3 excludes these. Only the owning session ($1) starts the children of a local
-- run. Excludes quarantined runs. Uses the primary key.
SELECT runs.id, position, life, wanted_runs.workflow, wanted_runs.params, again, placement = 'local', run_no
FROM wanted_runs JOIN runs ON runs.no = run_no
WHERE (run_no, position) > ($4, $5)
  AND (owner = $1 AND placement = 'local' OR placement <> 'local' AND NOT $3)
  AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, position LIMIT $2;
