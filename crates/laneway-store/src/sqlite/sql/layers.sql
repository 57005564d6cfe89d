-- Layers that count: of tasks of a run that have ended, and of their last attempts. Along the primary keys.
SELECT layers.position, layers.attempt, tasks.status, paths, bytes, hash, layers.node, oversize
FROM layers JOIN tasks USING (run_no, position, attempt)
WHERE run_no = ?1 AND tasks.status IN ('succeeded', 'failed')
ORDER BY layers.position;
