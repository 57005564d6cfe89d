-- Of what is older than the newest ?1, only the newest facts of containers, of the ports of a session and
-- of the images that it pulls stay. Along the primary key.
DELETE FROM pool_events
WHERE seq <= (SELECT max(seq) FROM pool_events) - ?1
  AND (name = 'container_terminated' OR container = '' OR session NOT IN (SELECT id FROM sessions)
       OR EXISTS (SELECT 1 FROM pool_events later
                  WHERE later.container = pool_events.container AND later.seq > pool_events.seq));
