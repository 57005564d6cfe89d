-- Runs that are to be started: of shared runs, which any node does, and of those of a session ($1). Not of a run that is set aside.
SELECT runs.id, position, life, wanted_runs.workflow, wanted_runs.params, again, placement = 'local'
FROM wanted_runs JOIN runs ON runs.no = run_no
WHERE (placement <> 'local' OR owner = $1) AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, position LIMIT $2;
