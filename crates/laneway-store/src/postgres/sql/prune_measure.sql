-- Measures some runs that are over and have not been measured since. Along the primary keys.
INSERT INTO run_bytes (run_no, last_event, bytes)
SELECT no, last_event,
       (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM log_chunks WHERE run_no = no)
     + (SELECT coalesce(sum(size), 0)::bigint FROM artifacts WHERE run_no = no)
     + (SELECT coalesce(sum(bytes), 0)::bigint FROM layers WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM events WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM effects WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM laid_by_effects WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(output)), 0)::bigint FROM tasks WHERE run_no = no)
FROM (SELECT no, runs.last_event FROM runs LEFT JOIN run_bytes ON run_no = no
      WHERE finished_at IS NOT NULL AND run_bytes.last_event IS DISTINCT FROM runs.last_event
      ORDER BY no LIMIT $1) AS unmeasured
ON CONFLICT (run_no) DO UPDATE SET last_event = excluded.last_event, bytes = excluded.bytes
RETURNING 1;
