-- The names of all workflows that have run, one look along runs_by_workflow for each.
WITH RECURSIVE names (name) AS (
    (SELECT workflow FROM runs ORDER BY workflow LIMIT 1)
    UNION ALL
    SELECT (SELECT workflow FROM runs WHERE workflow > name ORDER BY workflow LIMIT 1) FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL;
