-- Asks the holders of a run's running tasks to stop them. Index: tasks_live, which holds what is available too.
UPDATE tasks INDEXED BY tasks_live
SET stop = ?2
WHERE run_no = ?1 AND status IN ('available', 'running') AND status = 'running';
