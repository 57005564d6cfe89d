-- How many items of a step are available or running. Index: tasks_live, in which the position stands as well; it is named
-- because the planner would read every item otherwise, whatever has become of it.
SELECT count(*) FROM tasks INDEXED BY tasks_live
WHERE run_no = ?1 AND status IN ('available', 'running') AND position >= ?2 AND position < ?3;
