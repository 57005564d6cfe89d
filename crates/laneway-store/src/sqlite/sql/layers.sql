-- name: layer_add
-- Stores the layer of a task; it replaces the layer of an earlier attempt. Uses the primary key.
INSERT INTO layers (run_no, position, attempt, paths, bytes, hash, packed, node, oversize)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (run_no, position) DO UPDATE SET attempt = excluded.attempt, paths = excluded.paths, bytes = excluded.bytes,
    hash = excluded.hash, packed = excluded.packed, node = excluded.node, oversize = excluded.oversize;

-- name: layer_file_add
INSERT INTO layer_files (run_no, position, hash) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: layer_files_of_items_remove
-- Deletes the layer files of items whose list is gone. Uses the primary key.
DELETE FROM layer_files WHERE run_no = ?1 AND position >= ?2 AND position < ?3;

-- name: layer_files_remove
-- Deletes the files of an earlier layer of a task. Uses the primary key.
DELETE FROM layer_files WHERE run_no = ?1 AND position = ?2;

-- name: layers_of_items_remove
-- Deletes the layers of items whose list is gone. Uses the primary key.
DELETE FROM layers WHERE run_no = ?1 AND position >= ?2 AND position < ?3;

-- name: layers_on_nodes
-- Returns layers that count and that one node alone has, with a session of that node that takes new
-- work. Uses the primary keys; sessions are few.
SELECT layers.position, layers.attempt, layers.node, oversize,
       (SELECT id FROM sessions
        WHERE sessions.node = layers.node AND offer IS NOT NULL AND NOT is_draining
        ORDER BY registered_at DESC, id LIMIT 1)
FROM layers JOIN tasks USING (run_no, position, attempt)
WHERE run_no = ?1 AND layers.node IS NOT NULL AND tasks.status IN ('succeeded', 'failed')
ORDER BY layers.position;
