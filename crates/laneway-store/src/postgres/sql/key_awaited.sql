-- Whether somebody else waits at keys and will be woken for it. Index: tasks_at_key.
SELECT asked.key, asked.run_no, asked.position,
       EXISTS (SELECT 1 FROM tasks WHERE gate_key = asked.key AND wake_at IS NOT NULL
               AND NOT (tasks.run_no = asked.run_no AND tasks.position = asked.position))
FROM unnest($1, $2, $3) AS asked (key, run_no, position);
