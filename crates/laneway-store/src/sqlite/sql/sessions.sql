-- name: drain
-- Marks the sessions of node ?1, or session ?2, as draining. Returns only sessions that were not
-- draining before.
UPDATE sessions SET is_draining = 1 WHERE (node = ?1 OR id = ?2) AND is_draining = 0 RETURNING id, node, offer IS NOT NULL;

-- name: has_taker
-- Reports whether any session accepts tasks of a class.
SELECT 1 FROM takers WHERE class = ?1 LIMIT 1;

-- name: loss_count
-- Counts a lost session of a node. Uses the unique index of `no`.
INSERT INTO losses (node, lost, no) VALUES (?1, 1, (SELECT coalesce(max(no), 0) + 1 FROM losses))
ON CONFLICT (node) DO UPDATE SET lost = lost + 1, no = excluded.no;

-- name: node_claims
-- Returns some claims of a session, oldest first.
-- Index: tasks_held.
SELECT runs.id, tasks.position, tasks.attempt, tasks.started_at
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND tasks.session = ?1
ORDER BY tasks.started_at IS NULL, tasks.started_at, tasks.run_no, tasks.position LIMIT ?2;

-- name: node_event_append
-- Appends a node event. Numbers follow the order of commits, because SQLite has a single writer.
INSERT INTO node_events (at, node, session, name, version, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: node_events
-- Returns node events after a number, of node ?1 or, if NULL, of all nodes. Uses the primary key or
-- node_events_of_node.
SELECT seq, at, node, session, name, version, body FROM node_events
WHERE (?1 IS NULL OR node = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3;

-- name: nodes
-- Returns sessions that the reaper has not removed, with the number of their tasks and of lost
-- sessions of their node. `expires_at` is NULL for a session without a lease. The counts use
-- tasks_held and the primary key of `losses`.
SELECT id, node, pid, registered_at, slots, offer, is_draining,
       (SELECT count(*) FROM tasks WHERE tasks.status = 'running' AND tasks.session = sessions.id),
       renewed_at, tally, asks, contentions, last_active_at,
       coalesce((SELECT lost FROM losses WHERE losses.node = sessions.node), 0), expires_at, fires
FROM sessions ORDER BY node, id;

-- name: offers
-- Returns the offers of sessions that accept tasks of shared runs and are not draining.
SELECT id, offer FROM sessions WHERE offer IS NOT NULL AND is_draining = 0;

-- name: reap_queued
-- Clears the owner of queued runs of an ended session. The reaper runs this before it ends anything
-- of the session, so that no such run starts in the place of another.
-- Index: runs_owned.
UPDATE runs SET owner = NULL WHERE owner = ?1 AND status = 'queued' AND is_visible = 1;

-- name: register
-- Registers a session. The caller holds its lock already, so that a live process never has a row
-- without a lock. A remote session (?7) has a lease of ?8 milliseconds instead. Rejects a program
-- whose schema (?9) is older than the required minimum.
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, slots, offer, token, ttl_ms, expires_at, fires)
SELECT ?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?4 + ?8, ?10
WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'least_schema' AND CAST(value AS INTEGER) > ?9);

-- name: remote
-- Returns a remote worker's session. No row: the session does not exist, is over, or belongs to
-- this host.
SELECT node, token, slots, is_draining, ttl_ms FROM sessions WHERE id = ?1 AND token IS NOT NULL;

-- name: remote_claims
-- Returns all claims of a remote session, with their start.
-- Index: tasks_held.
SELECT run_no, position, attempt, started_at, attempt + given_back FROM tasks
WHERE status = 'running' AND session = ?1 ORDER BY run_no, position;

-- name: remote_expired
-- Reports whether the lease of a session has expired by ?2. It may have been renewed since the
-- reaper read it.
SELECT 1 FROM sessions WHERE id = ?1 AND expires_at <= ?2;

-- name: renew
-- Records the counters of a session, and renews its lease if there is a lease. An expired session
-- can renew until the reaper removes it. No row: the session is over.
UPDATE sessions
SET renewed_at = ?5, tally = ?2, asks = ?3, contentions = ?4, expires_at = ?5 + ttl_ms,
    last_active_at = iif(tally IS ?2, last_active_at, ?5)
WHERE id = ?1;

-- name: session_claims
-- Returns all claims of a session, including those of quarantined runs, and whether the run is
-- quarantined.
-- Index: tasks_held.
SELECT run_no, position, attempt, run_no IN (SELECT run_no FROM quarantine), attempt + given_back
FROM tasks WHERE status = 'running' AND session = ?1 ORDER BY run_no, position;

-- name: session_known
-- Reports whether a session exists. A reaped session never returns.
SELECT 1 FROM sessions WHERE id = ?1;

-- name: session_leaving
-- Returns the node address of a session, and whether it accepts tasks of shared runs. No row: the
-- session is over.
SELECT node, offer IS NOT NULL FROM sessions WHERE id = ?1;

-- name: session_offer
-- Returns the node address, the offer and the draining flag of a session. No row: the session is
-- over.
SELECT node, offer, is_draining FROM sessions WHERE id = ?1;

-- name: session_takes
-- Returns a row if a session takes tasks of a class. Uses the primary key.
SELECT 1 FROM takers WHERE class = ?1 AND session = ?2;

-- name: session_tally
-- Returns the counters of a session, and whether it has a lease.
SELECT tally, token IS NOT NULL FROM sessions WHERE id = ?1;

-- name: sessions
-- Returns every session that the reaper has not removed. The lease columns are NULL for a session
-- without a lease.
SELECT id, node, (SELECT count(*) FROM tasks WHERE status = 'running' AND session = sessions.id) AS held,
       renewed_at, expires_at, ttl_ms
FROM sessions ORDER BY id;

-- name: stops
-- Returns the claims that a session must stop, and whether their runs are quarantined.
-- Index: tasks_stopping.
SELECT run_no, position, attempt, stop, run_no IN (SELECT run_no FROM quarantine), attempt + given_back
FROM tasks WHERE stop IS NOT NULL AND session = ?1;

-- name: taker_add
INSERT INTO takers (class, session, delay, places, pool) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING;

-- name: takers_of_class_remove
-- Removes all sessions from the class of a run that is no longer bound to a node.
DELETE FROM takers WHERE class = ?1;

-- name: takers_of_session
-- Returns the classes that a session accepts, each with its delay, its pool and the room in that
-- pool. The room is NULL for a class without a pool. It is counted from the claims of the session,
-- of all classes of the pool; these are few.
-- Index: takers_of_session, and tasks_held.
SELECT class, delay, pool,
       CASE WHEN places IS NOT NULL THEN places - (
           SELECT count(*) FROM tasks JOIN takers AS same ON same.class = tasks.class AND same.session = tasks.session
           WHERE tasks.status = 'running' AND tasks.session = takers.session AND same.pool = takers.pool) END
FROM takers WHERE session = ?1;
