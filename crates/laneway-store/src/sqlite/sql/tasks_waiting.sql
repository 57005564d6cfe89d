-- Who is next when a run may have more at once. Index: tasks_waiting.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ?1 AND gate = 'max_parallel' ORDER BY rank, position LIMIT ?2;
