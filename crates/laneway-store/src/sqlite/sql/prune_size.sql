-- What a run takes up, without its logs, which are files. Along the primary keys.
SELECT (SELECT coalesce(sum(size), 0) FROM artifacts WHERE run_no = ?1)
     + (SELECT coalesce(sum(bytes), 0) FROM layers WHERE run_no = ?1)
     + (SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE run_no = ?1)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)
        FROM effects WHERE run_no = ?1)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)
        FROM laid_by_effects WHERE run_no = ?1)
     + (SELECT coalesce(sum(octet_length(output)), 0) FROM tasks WHERE run_no = ?1);
