-- Who was given warm containers, in facts that name something ($1, a run). Along the primary key, over the events that are kept: they
-- are bounded in number.
SELECT name, version, body FROM pool_events WHERE name = 'container_taken' AND strpos(body, $1) > 0 ORDER BY seq;
