-- The same of some tasks of a run as `task_gates` of all: of those of some ranges of positions ($3, up to $4). Along the primary key.
SELECT CASE WHEN is_ahead AND started_at IS NULL THEN 'max_parallel'
            WHEN $2 AND status = 'available' AND NOT EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) THEN 'node'
            ELSE gate END, class, wake_at, gate_key, position, item
FROM unnest($3, $4) AS part (first, behind) JOIN tasks ON position >= first AND position < behind
WHERE run_no = $1 ORDER BY position;
