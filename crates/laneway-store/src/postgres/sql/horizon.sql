-- The oldest transaction that keeps the server from removing dead rows, if it is at least $1
-- seconds old. A role without rights cannot read the begin of other roles' transactions: those count by how
-- many transactions have passed since.
SELECT who, seconds FROM (
    SELECT format('session %s of %s (%s)', pid, coalesce(usename, 'an unknown role'),
                  coalesce(nullif(application_name, ''), 'no name')) AS who,
           extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds,
           greatest(coalesce(age(backend_xmin), 0), coalesce(age(backend_xid), 0)) AS passed
    FROM pg_stat_activity
    WHERE (datname = current_database() OR backend_type = 'walsender') AND pid <> pg_backend_pid()
      -- The server ignores what a vacuum holds.
      AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL
    SELECT format('prepared transaction %s of %s', gid, owner),
           extract(epoch FROM clock_timestamp() - prepared)::bigint, age(transaction)
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT format('replication slot %s', slot_name), NULL, age(xmin)
    FROM pg_replication_slots WHERE xmin IS NOT NULL
) AS holders
WHERE coalesce(seconds >= $1, passed > 10000)
ORDER BY passed DESC LIMIT 1;
