-- Locks some blobs behind a hash that nobody brought for a while and nothing seems to refer to. A statement of its own: what
-- refers to them is looked for as of the lock. Those that somebody is naming are left out.
SELECT hash FROM blobs
WHERE hash > $1 AND touched_at < $2
  AND NOT EXISTS (SELECT FROM runs WHERE runs.bundle = blobs.hash)
  AND NOT EXISTS (SELECT FROM artifacts WHERE artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM layer_files WHERE layer_files.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM cache_layer_files WHERE cache_layer_files.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM definitions WHERE definitions.bundle = blobs.hash)
ORDER BY hash LIMIT $3 FOR UPDATE SKIP LOCKED;
