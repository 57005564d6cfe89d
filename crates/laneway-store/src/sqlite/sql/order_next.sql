-- Whose turn it is on an order's key, if it waits for that: the smallest version.
SELECT tasks.run_no, tasks.position
FROM orders JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
WHERE orders.key = ?1 AND tasks.gate = 'order' AND tasks.run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY orders.version, tasks.rank, tasks.run_no, tasks.position LIMIT 1;
