-- name: layer_add
-- Stores the layers of tasks; each replaces the layer of an earlier attempt. Uses the primary key.
INSERT INTO layers (run_no, position, attempt, paths, bytes, hash, packed, node, oversize)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (run_no, position) DO UPDATE SET attempt = excluded.attempt, paths = excluded.paths, bytes = excluded.bytes,
    hash = excluded.hash, packed = excluded.packed, node = excluded.node, oversize = excluded.oversize;

-- name: layer_file_add
INSERT INTO layer_files (run_no, position, hash) SELECT * FROM unnest($1, $2, $3) ON CONFLICT DO NOTHING;

-- name: layer_files_remove
-- Deletes the files of earlier layers of tasks. Uses the primary key.
DELETE FROM layer_files USING unnest($1, $2) AS gone (run_no, position)
WHERE layer_files.run_no = gone.run_no AND layer_files.position = gone.position;

-- name: layers_of_items_remove
-- Deletes the layers and layer files of items whose lists are gone. Uses the primary keys.
WITH gone AS (SELECT * FROM unnest($1, $2, $3) AS gone (run_no, first, behind)),
     files AS (DELETE FROM layer_files USING gone WHERE layer_files.run_no = gone.run_no
               AND layer_files.position >= gone.first AND layer_files.position < gone.behind)
DELETE FROM layers USING gone
WHERE layers.run_no = gone.run_no AND layers.position >= gone.first AND layers.position < gone.behind;

-- name: layers_on_nodes
-- Returns layers that count and that one node alone has, with a session of that node that takes new
-- work. Uses the primary keys; sessions are few.
SELECT run_no, layers.position, layers.attempt, layers.node, oversize,
       (SELECT id FROM sessions
        WHERE sessions.node = layers.node AND offer IS NOT NULL AND NOT is_draining
        ORDER BY registered_at DESC, id LIMIT 1)
FROM layers JOIN tasks USING (run_no, position, attempt)
WHERE run_no = ANY ($1) AND layers.node IS NOT NULL AND tasks.status IN ('succeeded', 'failed')
ORDER BY run_no, layers.position;
