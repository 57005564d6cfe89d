-- Rows that belong to no run.
SELECT 'tasks', count(*) FROM tasks WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'needs_sets', count(*) FROM needs_sets WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'item_batches', count(*) FROM item_batches WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'wanted_runs', count(*) FROM wanted_runs WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'attempts', count(*) FROM attempts WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'effects', count(*) FROM effects WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'laid_by_effects', count(*) FROM laid_by_effects WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'events', count(*) FROM events WHERE run_no NOT IN (SELECT no FROM runs)
UNION ALL SELECT 'quarantine', count(*) FROM quarantine WHERE run_no NOT IN (SELECT no FROM runs);
