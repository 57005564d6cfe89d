-- When the first attempt of some runs started: rows have the start of the last attempt of each task alone. Along the primary key.
SELECT run.no, first.at FROM unnest($1) AS run (no)
CROSS JOIN LATERAL (
    SELECT at FROM events WHERE run_no = run.no AND name = 'task_started' ORDER BY seq LIMIT 1
) AS first;
