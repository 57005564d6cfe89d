-- Everything of runs that verbs change, whether they are set aside, and the moment: this database's clock, unless the
-- caller brings its own ($2), and never before the last event of the run. The runs are locked.
SELECT no, status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled,
       quarantine.run_no IS NOT NULL,
       greatest(coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
                (SELECT at FROM events WHERE events.run_no = runs.no AND seq = last_event)),
       coalesce(what, ''), coalesce(why, ''), pauses, levels, not_before
FROM runs LEFT JOIN quarantine ON quarantine.run_no = runs.no
WHERE no = ANY ($1);
