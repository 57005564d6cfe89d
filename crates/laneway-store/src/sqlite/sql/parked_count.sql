-- How many tasks wait for a signal, a moment, a run or their items. Index: tasks_parked.
SELECT count(*) FROM tasks INDEXED BY tasks_parked WHERE status = 'parked';
