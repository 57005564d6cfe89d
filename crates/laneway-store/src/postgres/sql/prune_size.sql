-- What runs take up: logs as they are stored, artifacts, events and outputs. Along the primary keys.
SELECT no,
       (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM log_chunks WHERE run_no = no)
     + (SELECT coalesce(sum(size), 0)::bigint FROM artifacts WHERE run_no = no)
     + (SELECT coalesce(sum(bytes), 0)::bigint FROM layers WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM events WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM effects WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM laid_by_effects WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(output)), 0)::bigint FROM tasks WHERE run_no = no)
FROM unnest($1) AS no;
