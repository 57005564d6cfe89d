-- Who stands before a version on an order's key, smallest first.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, orders.version
FROM orders
JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
JOIN runs ON runs.no = orders.run_no
WHERE orders.key = $1 AND orders.version < $2 ORDER BY orders.version, orders.run_no, orders.position LIMIT $3;
