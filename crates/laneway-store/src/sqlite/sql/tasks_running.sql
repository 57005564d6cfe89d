-- What is held of a run. Index: tasks_live, which holds what is available too.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks INDEXED BY tasks_live
WHERE run_no = ?1 AND status IN ('available', 'running') AND status = 'running' ORDER BY position;
