-- Runs that are to be started, and that nobody has started for $2 milliseconds until $1, or now; and those for which no step waits.
-- Twenty say enough, the latter first.
SELECT runs.id, wanted_runs.position, wanted_runs.workflow, again IS NOT NULL, placement = 'local',
       coalesce(tasks.status, '') <> 'parked', tasks.started_at
FROM wanted_runs JOIN runs ON runs.no = wanted_runs.run_no
     LEFT JOIN tasks ON tasks.run_no = wanted_runs.run_no AND tasks.position = wanted_runs.position
WHERE wanted_runs.run_no NOT IN (SELECT run_no FROM quarantine)
  AND (coalesce(tasks.status, '') <> 'parked'
       OR tasks.started_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - $2::bigint)
ORDER BY 6 DESC, wanted_runs.run_no, wanted_runs.position LIMIT 20;
