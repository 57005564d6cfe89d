-- How many tasks wait for a signal, a moment, a run or their items. Locks nothing. Index: tasks_parked.
SELECT count(*) FROM tasks WHERE status = 'parked';
