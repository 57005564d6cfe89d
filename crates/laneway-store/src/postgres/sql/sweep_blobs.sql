-- Removes locked blobs, with their chunks, if nothing refers to them.
WITH gone AS (
    DELETE FROM blobs
    WHERE hash = ANY ($1)
      AND NOT EXISTS (SELECT FROM runs WHERE runs.bundle = blobs.hash)
      AND NOT EXISTS (SELECT FROM artifacts WHERE artifacts.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM layer_files WHERE layer_files.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM cache_layer_files WHERE cache_layer_files.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM definitions WHERE definitions.bundle = blobs.hash)
    RETURNING hash, size
), chunks AS (DELETE FROM blob_chunks USING gone WHERE blob_chunks.hash = gone.hash)
SELECT size FROM gone;
