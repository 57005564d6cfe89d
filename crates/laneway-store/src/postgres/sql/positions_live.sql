-- Where the live tasks of a run stand. Index: tasks_live.
SELECT position FROM tasks WHERE run_no = $1 AND status IN ('available', 'running') ORDER BY position;
