-- What all artifacts are kept under. Index: artifacts_by_hash.
SELECT DISTINCT hash FROM artifacts;
