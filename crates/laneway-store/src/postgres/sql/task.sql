-- Some tasks of some runs, with everything of them that changes; of those that may become available, whether somebody
-- takes them. Along the primary key.
SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence,
       CASE WHEN status = 'pending' AND class >= 0 THEN EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) END
FROM tasks JOIN unnest($1, $2) AS wanted (run_no, position) USING (run_no, position);
