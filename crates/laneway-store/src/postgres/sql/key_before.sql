-- Whether somebody waits at keys who comes before a task. Index: tasks_at_key.
SELECT asked.key, asked.run_no, asked.position, asked.rank,
       EXISTS (SELECT 1 FROM tasks
               WHERE gate_key = asked.key AND (tasks.rank, tasks.run_no, tasks.position) < (asked.rank, asked.run_no, asked.position)
                 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no))
FROM unnest($1, $2, $3, $4) AS asked (key, run_no, position, rank);
