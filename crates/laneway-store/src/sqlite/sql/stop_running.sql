-- Asks the holders of a run's running tasks to stop them. Index: tasks_live.
UPDATE tasks SET stop = ?2 WHERE run_no = ?1 AND status = 'running';
