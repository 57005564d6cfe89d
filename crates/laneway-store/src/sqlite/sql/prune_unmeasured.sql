-- Runs that are over and have not been measured since, oldest first. Along the primary keys.
SELECT no, id, runs.last_event FROM runs LEFT JOIN run_bytes ON run_no = no
WHERE finished_at IS NOT NULL AND is_visible = 1 AND run_bytes.last_event IS NOT runs.last_event
ORDER BY no LIMIT ?1;
