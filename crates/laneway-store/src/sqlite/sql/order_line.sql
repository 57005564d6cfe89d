-- Who stands on the key of an order, the smallest version first, and since when those wait that wait for it. Along the primary
-- key.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, runs.workflow, runs.version,
       CASE WHEN tasks.gate = 'order' THEN tasks.rank END, orders.version
FROM orders
JOIN tasks ON tasks.run_no = orders.run_no AND tasks.position = orders.position
JOIN runs ON runs.no = orders.run_no
WHERE orders.key = ?1 ORDER BY orders.version, orders.run_no, orders.position LIMIT ?2;
