-- name: examine_attempts
-- Returns the attempts of a run, so that the doctor can validate their words.
SELECT position, attempt, node, outcome, reason, detail FROM attempts WHERE run_no = $1 ORDER BY position, attempt;

-- name: examine_counter
-- Returns the stored counter of a run, so that the doctor can recompute it.
SELECT unsettled FROM runs WHERE no = $1;

-- name: examine_needs
-- Returns the stored counters of each needs set of a run, so that the doctor can recompute them.
SELECT set_no, unsettled, succeeded, failed, passed_over FROM needs_sets WHERE run_no = $1 ORDER BY set_no;

-- name: examine_strays
-- Counts rows whose run does not exist, by table.
SELECT 'tasks', count(*) FROM tasks WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'needs_sets', count(*) FROM needs_sets WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'item_batches', count(*) FROM item_batches WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'wanted_runs', count(*) FROM wanted_runs WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'attempts', count(*) FROM attempts WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'effects', count(*) FROM effects WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'laid_by_effects', count(*) FROM laid_by_effects WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'events', count(*) FROM events WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'quarantine', count(*) FROM quarantine WHERE run_no NOT IN (SELECT no FROM runs);

-- name: quarantine_list
-- Lists all quarantined runs. The id is NULL if the run does not exist.
SELECT quarantine.run_no, runs.id, what, why, since
FROM quarantine LEFT JOIN runs ON runs.no = quarantine.run_no ORDER BY quarantine.run_no;

-- name: quarantine_remove
-- Releases a run from quarantine. The caller holds the lock of the run.
DELETE FROM quarantine WHERE run_no = $1;
