-- Whose turn it is on an order's key, if it waits for that: the smallest version.
SELECT tasks.run_no, runs.id, tasks.position
FROM orders JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
JOIN runs ON runs.no = tasks.run_no
WHERE orders.key = $1 AND tasks.gate = 'order'
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY orders.version, tasks.rank, tasks.run_no, tasks.position LIMIT 1;
