-- The newest run of a workflow, for what it ran and where. Along the primary key, newest first: what ran lately is
-- found at once, a name that never ran costs a look at all runs.
SELECT version, dir FROM runs WHERE workflow = $1 AND is_visible ORDER BY no DESC LIMIT 1;
