-- Layers that count and that one node alone has, with a session of that node that takes new work. Along the primary keys;
-- sessions are few.
SELECT layers.position, layers.attempt, layers.node, oversize,
       (SELECT id FROM sessions
        WHERE sessions.node = layers.node AND offer IS NOT NULL AND NOT is_draining
        ORDER BY registered_at DESC, id LIMIT 1)
FROM layers JOIN tasks USING (run_no, position, attempt)
WHERE run_no = ?1 AND layers.node IS NOT NULL AND tasks.status IN ('succeeded', 'failed')
ORDER BY layers.position;
