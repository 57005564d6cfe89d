-- Who is next when runs may have more at once: so many of each, and whether somebody takes them. Index: tasks_waiting.
SELECT task.* FROM unnest($1, $2) AS wanted (run_no, number)
CROSS JOIN LATERAL (
    SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence,
       CASE WHEN class >= 0 THEN EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) END
    FROM tasks WHERE tasks.run_no = wanted.run_no AND gate = 'max_parallel' ORDER BY rank, position LIMIT wanted.number
) AS task
ORDER BY task.run_no, task.rank, task.position;
