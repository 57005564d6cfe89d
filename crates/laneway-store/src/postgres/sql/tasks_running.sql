-- What is held of some runs. Index: tasks_live, which holds what is available too.
SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ANY ($1) AND status IN ('available', 'running') AND status = 'running'
ORDER BY run_no, position;
