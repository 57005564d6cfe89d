-- The class of a task that could start and that no live node takes, of those of some runs of which nothing was executed and nothing can be
-- now. Along the primary key.
SELECT run_no, min(class) FILTER (WHERE gate = 'node' OR status = 'available') FROM tasks WHERE run_no = ANY ($1)
GROUP BY run_no
HAVING count(*) FILTER (
    WHERE status NOT IN ('pending', 'available', 'skipped')
       OR (status = 'available' AND EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class))
) = 0;
