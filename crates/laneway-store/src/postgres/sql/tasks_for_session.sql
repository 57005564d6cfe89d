-- Tasks that wait for a node though this session takes their class, but for runs that are set aside. Index: takers_of_session,
-- tasks_for_nodes.
SELECT run_no, runs.id, position FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE gate = 'node' AND tasks.class IN (SELECT class FROM takers WHERE session = $1 AND class > 0)
AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY run_no, rank, position;
