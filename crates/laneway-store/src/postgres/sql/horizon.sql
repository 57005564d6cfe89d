-- The oldest transaction that keeps the server from removing dead rows, if it is so many seconds old. Of sessions of other
-- roles a role without rights sees neither name nor begin: those count by how many transactions have passed.
SELECT who, seconds FROM (
    SELECT format('session %s of %s (%s)', pid, coalesce(usename, 'an unknown role'),
                  coalesce(nullif(application_name, ''), 'no name')) AS who,
           extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds,
           greatest(coalesce(age(backend_xmin), 0), coalesce(age(backend_xid), 0)) AS passed
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
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
