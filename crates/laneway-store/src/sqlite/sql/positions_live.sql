-- Where the live tasks of a run stand. Index: tasks_live, named because the planner takes the primary key for as good.
SELECT position FROM tasks INDEXED BY tasks_live
WHERE run_no = ?1 AND status IN ('available', 'running') ORDER BY position;
