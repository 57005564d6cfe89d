-- How many items of some steps are available or running: in a statement behind the lock of their runs, never in the same.
-- Index: tasks_live.
SELECT wanted.run_no, wanted.step, (
    SELECT count(*) FROM tasks
    WHERE tasks.run_no = wanted.run_no AND status IN ('available', 'running')
      AND position >= wanted.first AND position < wanted.behind)
FROM unnest($1, $2, $3, $4) AS wanted (run_no, step, first, behind);
