-- The same of some tasks of a run as `task_gates` of all: of those from ?3 on and before ?4. Along primary keys.
SELECT CASE WHEN is_ahead = 1 AND started_at IS NULL THEN 'max_parallel'
            WHEN ?2 AND status = 'available' AND NOT EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) THEN 'node'
            ELSE gate END, class, wake_at, position, item
FROM tasks WHERE run_no = ?1 AND position >= ?3 AND position < ?4 ORDER BY position;
