-- What a halt or a cancel reaches at once: tasks that nobody holds.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks WHERE run_no = ?1 AND status IN ('pending', 'available', 'parked') ORDER BY position;
