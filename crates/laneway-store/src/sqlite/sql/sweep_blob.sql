-- A blob, if nobody brought it for a while and nothing refers to it.
DELETE FROM blobs
WHERE hash = ?1 AND touched_at < ?2
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.bundle = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM definitions WHERE definitions.bundle = blobs.hash)
RETURNING size;
