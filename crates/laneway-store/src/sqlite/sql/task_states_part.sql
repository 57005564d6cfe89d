-- Some tasks of a run, as `task_states` tells them: those from ?2 on and before ?3. Along the primary key.
SELECT position, status, attempt, node, reason, detail, exit_code, output, run_at, started_at, finished_at,
       retries, lost, took_ms, is_ahead, wait, growth, item
FROM tasks WHERE run_no = ?1 AND position >= ?2 AND position < ?3 ORDER BY position;
