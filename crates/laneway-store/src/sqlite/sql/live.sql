-- Holders of the run's `max_parallel`, counted from live tasks. Index: tasks_live. It is named because the planner
-- takes the primary key for as good, and would read every task of the run at every finish.
SELECT count(*) FROM tasks INDEXED BY tasks_live WHERE run_no = ?1 AND status IN ('available', 'running');
