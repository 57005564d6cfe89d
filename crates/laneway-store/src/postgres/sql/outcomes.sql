-- The newest runs of each workflow, and how they went. Locks nothing. Index: runs_by_workflow.
SELECT asked.name, run.id, run.status, run.submitted_at, run.started_at, run.finished_at
FROM unnest($1::text[]) WITH ORDINALITY AS asked (name, place)
CROSS JOIN LATERAL (
    SELECT no, id, status, submitted_at, started_at, finished_at
    FROM runs WHERE workflow = asked.name AND is_visible ORDER BY no DESC LIMIT $2
) AS run
ORDER BY asked.place, run.no DESC;
