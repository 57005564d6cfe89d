-- Holders of the `max_parallel` of some runs, counted from live tasks: in a statement behind the lock, never in the
-- same. Index: tasks_live.
SELECT run_no, count(*) FROM tasks WHERE run_no = ANY ($1) AND status IN ('available', 'running') GROUP BY run_no;
