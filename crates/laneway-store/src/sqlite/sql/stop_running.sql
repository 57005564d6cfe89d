-- Asks the holders of a run's running tasks to stop them. Index: tasks_live (named, as in live.sql).
UPDATE tasks INDEXED BY tasks_live SET stop = ?2
WHERE run_no = ?1 AND status IN ('available', 'running') AND status = 'running';
