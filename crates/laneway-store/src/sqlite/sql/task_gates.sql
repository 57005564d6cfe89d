-- Which gate each task of a run waits for, in the order of the plan. Where anybody may run it (?2), one that could be taken and that
-- nobody takes any more waits for a node again, though nobody has written that down. Along primary keys.
SELECT CASE WHEN is_ahead = 1 AND started_at IS NULL THEN 'max_parallel'
            WHEN ?2 AND status = 'available' AND NOT EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) THEN 'node'
            ELSE gate END, class, wake_at, position, item
FROM tasks WHERE run_no = ?1 ORDER BY position;
