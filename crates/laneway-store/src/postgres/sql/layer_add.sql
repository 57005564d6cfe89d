-- Layers of tasks, in the place of those of earlier attempts. Along the primary key.
INSERT INTO layers (run_no, position, attempt, paths, bytes, hash, packed, node, oversize)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (run_no, position) DO UPDATE SET attempt = excluded.attempt, paths = excluded.paths, bytes = excluded.bytes,
    hash = excluded.hash, packed = excluded.packed, node = excluded.node, oversize = excluded.oversize;
