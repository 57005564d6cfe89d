-- Some tasks of a run, as `task_states` tells them: those of some ranges of positions ($2, up to $3). Along the primary key.
SELECT position, status, attempt, node, reason, detail, exit_code, output, run_at, started_at, finished_at,
       retries, lost, took_ms, is_ahead, wait, growth, item
FROM unnest($2, $3) AS part (first, behind) JOIN tasks ON position >= first AND position < behind
WHERE run_no = $1 ORDER BY position;
