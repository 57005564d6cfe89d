-- name: prune_batches
-- Deletes the items of a run that never became tasks.
DELETE FROM item_batches WHERE run_no = $1;

-- name: prune_laid_by
-- Deletes the saved effects of a run that is being removed. Uses laid_by_effects_of_step.
DELETE FROM laid_by_effects WHERE run_no = $1;

-- name: prune_look
-- Returns the first run at or above a number. Uses the primary key.
SELECT no, submitted_at FROM runs WHERE no >= $1 ORDER BY no LIMIT 1;

-- name: prune_needs_sets
-- Deletes the needs sets of a run that is being removed. Uses the primary key.
DELETE FROM needs_sets WHERE run_no = $1;
