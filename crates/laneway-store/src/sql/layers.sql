-- name: layer_packed
-- Returns the packed layer of a task. NULL: the layer is too large for a row. Uses the primary key.
SELECT packed FROM layers WHERE run_no = $1 AND position = $2 AND hash = $3;

-- name: layers
-- Returns the layers that apply: those of ended tasks, from each task's last attempt. Uses the
-- primary keys.
SELECT layers.position, layers.attempt, tasks.status, paths, bytes, hash, layers.node, oversize
FROM layers JOIN tasks USING (run_no, position, attempt)
WHERE run_no = $1 AND tasks.status IN ('succeeded', 'failed')
ORDER BY layers.position;
