-- name: examine_count
SELECT count(*) FROM runs WHERE is_visible = 1;

-- name: examine_known
-- Reports whether a run exists, complete or not.
SELECT 1 FROM runs WHERE id = ?1;

-- name: examine_runs
-- Returns the runs that the doctor checks, newest first. Uses the primary key.
SELECT no, id FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT ?1;

-- name: examine_wanted
-- Returns child runs that were requested at ?1 or earlier and have not started. Also returns
-- requests for which no step waits; these come first. Twenty rows are enough for a report.
SELECT runs.id, wanted_runs.position, wanted_runs.workflow, again IS NOT NULL, placement = 'local',
       coalesce(tasks.status, '') <> 'parked', tasks.started_at
FROM wanted_runs JOIN runs ON runs.no = wanted_runs.run_no
     LEFT JOIN tasks ON tasks.run_no = wanted_runs.run_no AND tasks.position = wanted_runs.position
WHERE wanted_runs.run_no NOT IN (SELECT run_no FROM quarantine)
  AND (coalesce(tasks.status, '') <> 'parked' OR tasks.started_at <= ?1)
ORDER BY 6 DESC, wanted_runs.run_no, wanted_runs.position LIMIT 20;

-- name: quarantine_add
-- Quarantines a run. The first reason stays.
INSERT INTO quarantine (run_no, what, why, since) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING;

-- name: quarantine_read
-- No row: the run is not quarantined.
SELECT what, why, since FROM quarantine WHERE run_no = ?1;

-- name: quarantine_subject
-- Returns the number of a visible run. A run that is being submitted cannot be quarantined.
SELECT no FROM runs WHERE id = ?1 AND is_visible = 1;
