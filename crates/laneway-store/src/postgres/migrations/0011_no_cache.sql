-- Whether a run was asked not to take results of before (docs/design/cache.md). Whoever executes its steps keeps to it, and the runs
-- that they start.
ALTER TABLE runs ADD COLUMN no_cache BOOLEAN NOT NULL DEFAULT false;
