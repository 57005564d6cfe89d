-- Runs that are to be started, and that nobody has started since ?1; and those for which no step waits. Twenty say enough, the latter first.
SELECT runs.id, wanted_runs.position, wanted_runs.workflow, again IS NOT NULL, placement = 'local',
       coalesce(tasks.status, '') <> 'parked', tasks.started_at
FROM wanted_runs JOIN runs ON runs.no = wanted_runs.run_no
     LEFT JOIN tasks ON tasks.run_no = wanted_runs.run_no AND tasks.position = wanted_runs.position
WHERE wanted_runs.run_no NOT IN (SELECT run_no FROM quarantine)
  AND (coalesce(tasks.status, '') <> 'parked' OR tasks.started_at <= ?1)
ORDER BY 6 DESC, wanted_runs.run_no, wanted_runs.position LIMIT 20;
