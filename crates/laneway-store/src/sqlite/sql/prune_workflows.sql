-- The names of all workflows that have run, one look along runs_by_workflow for each.
WITH RECURSIVE names (name) AS (
    SELECT min(workflow) FROM runs
    UNION ALL
    SELECT (SELECT min(workflow) FROM runs WHERE workflow > name) FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL;
