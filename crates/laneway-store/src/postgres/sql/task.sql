-- Some tasks of some runs, with everything of them that changes. Along the primary key.
SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class
FROM tasks JOIN unnest($1, $2) AS wanted (run_no, position) USING (run_no, position);
