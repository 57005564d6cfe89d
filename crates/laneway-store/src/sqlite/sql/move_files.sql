-- Files that lie beside the database: what rows name and no blob has.
SELECT hash FROM (
    SELECT hash FROM artifacts UNION SELECT hash FROM cache_artifacts
    UNION SELECT hash FROM layer_files UNION SELECT hash FROM cache_layer_files
) WHERE hash NOT IN (SELECT hash FROM blobs WHERE is_whole = 1) ORDER BY hash;
