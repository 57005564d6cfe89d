-- Who is next among the items of a step that lets only so many run at once. Index: tasks_in_group.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks INDEXED BY tasks_in_group
WHERE run_no = ?1 AND gate = 'group' AND position >= ?2 AND position < ?3 ORDER BY rank, position LIMIT ?4;
