-- How many items of some steps are available or running, or wait for a run that they have started: in a statement behind the lock of their runs, never in the same.
-- Index: tasks_live, and tasks_parked.
SELECT wanted.run_no, wanted.step, (
    SELECT count(*) FROM tasks
    WHERE tasks.run_no = wanted.run_no AND status IN ('available', 'running')
      AND position >= wanted.first AND position < wanted.behind) + (
    SELECT count(*) FROM tasks
    WHERE tasks.run_no = wanted.run_no AND status = 'parked'
      AND position >= wanted.first AND position < wanted.behind)
FROM unnest($1, $2, $3, $4) AS wanted (run_no, step, first, behind);
