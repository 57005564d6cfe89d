-- What all artifacts and files of layers are kept under. Indexes: artifacts_by_hash, layer_files_by_hash, cache_layer_files_by_hash.
SELECT hash FROM artifacts
UNION
SELECT hash FROM layer_files
UNION
SELECT hash FROM cache_layer_files;
