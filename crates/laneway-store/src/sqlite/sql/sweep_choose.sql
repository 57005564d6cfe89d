-- Blobs behind a hash that nobody brought for a while and nothing refers to. Along the primary key.
SELECT hash FROM blobs
WHERE hash > ?1 AND touched_at < ?2
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.bundle = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM definitions WHERE definitions.bundle = blobs.hash)
ORDER BY hash LIMIT ?3;
