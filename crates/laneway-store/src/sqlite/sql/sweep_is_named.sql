-- Whether an artifact or a file of a layer is kept under a hash, of a run or of a result.
-- Indexes: artifacts_by_hash, cache_artifacts_by_hash, layer_files_by_hash, cache_layer_files_by_hash.
SELECT 1 FROM artifacts WHERE hash = ?1
UNION ALL
SELECT 1 FROM cache_artifacts WHERE hash = ?1
UNION ALL
SELECT 1 FROM layer_files WHERE hash = ?1
UNION ALL
SELECT 1 FROM cache_layer_files WHERE hash = ?1;
