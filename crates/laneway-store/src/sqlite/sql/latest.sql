-- What starts under a name: the newest that was applied, or else the newest run, for what it ran and where. Hooks, whose
-- versions have a dot, start when a run ends and never by their name; neither does what ran before the name was removed.
-- Index: runs_by_workflow.
SELECT version, dir, bundle, no FROM (
    SELECT version, dir, bundle, no FROM definitions WHERE name = ?1 ORDER BY no DESC LIMIT 1
)
UNION ALL
SELECT version, dir, bundle, NULL FROM (
    SELECT version, dir, bundle, submitted_at FROM runs WHERE workflow = ?1 AND is_visible = 1 AND instr(version, '.') = 0
    ORDER BY no DESC LIMIT 1
)
WHERE submitted_at > coalesce((SELECT removed_at FROM removed_workflows WHERE name = ?1), -1)
LIMIT 1;
