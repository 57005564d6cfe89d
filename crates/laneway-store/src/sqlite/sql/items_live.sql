-- How many items of a step are available or running, or wait for a run that they have started. Index: tasks_live, in which the
-- position stands as well, and tasks_parked; they are named because the planner would read every item otherwise, whatever has
-- become of it.
SELECT (SELECT count(*) FROM tasks INDEXED BY tasks_live
        WHERE run_no = ?1 AND status IN ('available', 'running') AND position >= ?2 AND position < ?3)
     + (SELECT count(*) FROM tasks INDEXED BY tasks_parked
        WHERE run_no = ?1 AND status = 'parked' AND position >= ?2 AND position < ?3);
