-- `last`: the newest run that a person or a program submitted, and no step, hook or trigger. Keys that begin like these are Laneway's
-- own (`submission_key.rs`). Walks down the primary key past the others.
SELECT id FROM runs
WHERE is_visible = 1 AND parent IS NULL
  AND (key IS NULL OR NOT (key GLOB 'schedule *' OR key GLOB 'after *' OR key GLOB 'webhook *' OR key GLOB 'hooks of *' OR key GLOB 'child of *'))
ORDER BY no DESC LIMIT 1;
