-- Holders of the run's `max_parallel`, counted from live tasks. Index: tasks_live.
-- Named, because the primary key begins with the same column and would read every task of the run.
SELECT count(*) FROM tasks INDEXED BY tasks_live WHERE run_no = ?1 AND status IN ('available', 'running');
