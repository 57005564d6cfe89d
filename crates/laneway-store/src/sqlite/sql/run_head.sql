-- The parts of a run that never change. One whose removal has begun is gone for everybody; one that is being submitted is
-- there for who submits it.
SELECT no, version, dir, params, max_parallel, placement, submitted_from, class, bundle, parent, root_no, no_cache FROM runs
WHERE id = ?1 AND (is_visible = 1 OR finished_at IS NULL);
