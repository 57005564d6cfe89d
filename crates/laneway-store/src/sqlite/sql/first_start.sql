-- When the first attempt of a run started: rows have the start of the last attempt of each task alone. Along the primary key.
SELECT at FROM events WHERE run_no = ?1 AND name = 'task_started' ORDER BY seq LIMIT 1;
