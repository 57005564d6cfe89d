-- Tasks of classes that nobody could run, but for runs that are set aside. Index: tasks_for_nodes.
SELECT run_no, runs.id, position FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE gate = 'node' AND tasks.class = ANY ($1) AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY run_no, rank, position;
