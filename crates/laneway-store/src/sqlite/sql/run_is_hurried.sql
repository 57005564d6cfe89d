-- Whether a run is being canceled and has no time for clean-up, or none any more: then its children have none either.
SELECT coalesce(closing IN ('canceled', 'run_timeout') AND deadline_at IS NULL, false) FROM runs WHERE id = ?1;
