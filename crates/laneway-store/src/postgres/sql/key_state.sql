-- Of keys that are locked: how many tasks hold each, which follow-ups say that it became free, and
-- the task that has waited longest, of all runs but those that are set aside. One statement, so that
-- all of it is as of one moment. Indexes: holds' primary key, follow_ups_by_subject, tasks_at_key.
SELECT asked.key,
       (SELECT count(*) FROM holds WHERE holds.key = asked.key),
       ARRAY(SELECT seq FROM follow_ups WHERE kind = 'key' AND subject = asked.key),
       head.rank, head.run_no, head.position
FROM unnest($1) AS asked (key)
LEFT JOIN LATERAL (
    SELECT tasks.rank, tasks.run_no, tasks.position FROM tasks
    WHERE tasks.gate_key = asked.key
      AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no)
    ORDER BY tasks.rank, tasks.run_no, tasks.position LIMIT 1
) AS head ON true;
