-- Some facts of nodes that are older than a moment, from the beginning on. Those of sessions that live stay, since what they are is read
-- from them, and so does the newest, so that its number is not given out again: a cursor would pass by. Along the primary key, over ?2
-- facts of others at the most.
DELETE FROM node_events
WHERE seq <= (SELECT max(seq) FROM (SELECT seq FROM node_events WHERE session NOT IN (SELECT id FROM sessions)
                                    ORDER BY seq LIMIT ?2))
  AND seq < (SELECT max(seq) FROM node_events) AND at < ?1 AND session NOT IN (SELECT id FROM sessions);
