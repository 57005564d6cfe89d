-- A run of each version of which runs have not ended, also one that is just being submitted. Index: runs_unfinished.
SELECT min(id) FROM runs WHERE status IN ('queued', 'running') GROUP BY version;
