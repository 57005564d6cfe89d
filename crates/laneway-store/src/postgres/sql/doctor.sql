-- name: examine_count
SELECT count(*) FROM runs WHERE is_visible;

-- name: examine_runs
-- Returns the runs that the doctor checks, newest first. Uses the primary key.
SELECT no, id FROM runs WHERE is_visible ORDER BY no DESC LIMIT $1;

-- name: examine_wanted
-- Returns child runs that were requested at least $2 milliseconds before $1, or before now, and
-- have not started. Also returns requests for which no step waits; these come first. Twenty rows
-- are enough for a report.
SELECT runs.id, wanted_runs.position, wanted_runs.workflow, again IS NOT NULL, placement = 'local',
       coalesce(tasks.status, '') <> 'parked', tasks.started_at
FROM wanted_runs JOIN runs ON runs.no = wanted_runs.run_no
     LEFT JOIN tasks ON tasks.run_no = wanted_runs.run_no AND tasks.position = wanted_runs.position
WHERE wanted_runs.run_no NOT IN (SELECT run_no FROM quarantine)
  AND (coalesce(tasks.status, '') <> 'parked'
       OR tasks.started_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - $2::bigint)
ORDER BY 6 DESC, wanted_runs.run_no, wanted_runs.position LIMIT 20;

-- name: horizon
-- Returns the oldest transaction that keeps the server from removing dead rows, if it is at least
-- $1 seconds old. A role without privileges cannot read when transactions of other roles began. For
-- those, the number of later transactions counts.
SELECT who, seconds FROM (
    SELECT format('session %s of %s (%s)', pid, coalesce(usename, 'an unknown role'),
                  coalesce(nullif(application_name, ''), 'no name')) AS who,
           extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds,
           greatest(coalesce(age(backend_xmin), 0), coalesce(age(backend_xid), 0)) AS passed
    FROM pg_stat_activity
    WHERE (datname = current_database() OR backend_type = 'walsender') AND pid <> pg_backend_pid()
      -- The server ignores the horizon of a vacuum.
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

-- name: quarantine_add
-- Quarantines a run. The first reason stays.
INSERT INTO quarantine (run_no, what, why, since)
VALUES ($1, $2, $3, coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT DO NOTHING RETURNING run_no;

-- name: quarantine_read
-- Returns the reasons of quarantined runs. Uses the primary key.
SELECT run_no, what, why, since FROM quarantine WHERE run_no = ANY ($1);
