-- The parts of a run that never change.
SELECT no, version, dir, params, max_parallel, placement, submitted_from, class, bundle, parent, root_no, no_cache FROM runs WHERE id = $1;
