-- Some chunks of a blob, in order, along the primary key.
SELECT bytes FROM blob_chunks WHERE hash = $1 AND no >= $2 ORDER BY no LIMIT $3;
