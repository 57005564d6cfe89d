-- Whether an artifact is kept under a hash. Index: artifacts_by_hash.
SELECT 1 FROM artifacts WHERE hash = ?1;
