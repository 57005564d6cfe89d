-- `last`: the newest run that a person or a program submitted, and no step, hook or trigger. Keys that begin like these are Laneway's
-- own (`submission_key.rs`). Walks down the primary key past the others.
SELECT id FROM runs
WHERE is_visible AND parent IS NULL
  AND (key IS NULL OR NOT (key LIKE 'schedule %' OR key LIKE 'after %' OR key LIKE 'webhook %' OR key LIKE 'hooks of %' OR key LIKE 'child of %'))
ORDER BY no DESC LIMIT 1;
