-- name: drain
-- Marks the sessions of node $1, or session $2, as draining. Returns only sessions that were not
-- draining before.
UPDATE sessions SET is_draining = true WHERE (node = $1 OR id = $2) AND NOT is_draining
RETURNING id, node, offer IS NOT NULL;

-- name: has_taker
-- Returns the classes that any session accepts.
SELECT DISTINCT class FROM takers WHERE class = ANY ($1);

-- name: loss_count
-- Counts a lost session of a node. The caller holds the lock of the key `nodes`, as for the event
-- of the loss. Each loss therefore has its own number.
-- Index: losses_no_key.
INSERT INTO losses (node, lost, no) SELECT $1, 1, coalesce((SELECT max(no) FROM losses), 0) + 1
ON CONFLICT (node) DO UPDATE SET lost = losses.lost + 1, no = excluded.no;

-- name: node_claims
-- Returns some claims of a session, oldest first.
-- Index: tasks_held.
SELECT runs.id, tasks.position, tasks.attempt, tasks.started_at
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND tasks.session = $1
ORDER BY tasks.started_at NULLS LAST, tasks.run_no, tasks.position LIMIT $2;

-- name: node_event_append
-- Appends a node event. The caller holds the lock of the key `nodes`, so that numbers follow the
-- order of commits without gaps.
INSERT INTO node_events (seq, at, node, session, name, version, body)
SELECT coalesce((SELECT max(seq) FROM node_events), 0) + 1,
       coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $2, $3, $4, $5, $6;

-- name: node_events
-- Returns node events after a number, of node $1 or, if NULL, of all nodes. Uses the primary key or
-- node_events_of_node.
SELECT seq, at, node, session, name, version, body FROM node_events
WHERE ($1::text IS NULL OR node = $1) AND seq > $2 ORDER BY seq LIMIT $3;

-- name: nodes
-- Returns sessions whose lease has not expired, with the number of their tasks and of lost sessions
-- of their node. Also returns the current moment. The counts use tasks_held and the primary key of
-- `losses`.
SELECT id, node, pid, registered_at, slots, offer, is_draining,
       (SELECT count(*) FROM tasks WHERE tasks.status = 'running' AND tasks.session = sessions.id),
       renewed_at, tally, asks, contentions, last_active_at,
       coalesce((SELECT lost FROM losses WHERE losses.node = sessions.node), 0), moment.now,
       expires_at - renewed_at, fires
FROM sessions,
     (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE expires_at > moment.now ORDER BY node, id;

-- name: offers
-- Returns the offers of sessions that accept tasks of shared runs and are not draining.
SELECT id, offer FROM sessions WHERE offer IS NOT NULL AND NOT is_draining;

-- name: reap_due
-- Returns the milliseconds until the next lease expires, except those of the reaper's own sessions
-- ($1). A value of 0 or less means an expired lease.
SELECT min(expires_at) - coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM sessions WHERE id <> ALL ($1);

-- name: reap_expired
-- Returns sessions whose lease has expired. $1 are the reaper's own sessions. The reaper must have
-- renewed since that expiry: otherwise it may be disconnected itself. Two further rules apply,
-- unless the caller passes its own clock ($2):
-- - A full lease has passed since the server started. Sessions could not renew while it was down.
-- - For a remote worker, a full lease has passed since the reaper registered. Before that, the
--   worker may have had no service to renew with.
SELECT id, node FROM sessions AS victim
WHERE expires_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND id <> ALL ($1)
  AND EXISTS (SELECT 1 FROM sessions AS reaper WHERE reaper.id = ANY ($1) AND reaper.renewed_at >= victim.expires_at
              AND ($2 IS NOT NULL OR victim.token IS NULL
                   OR reaper.registered_at + victim.ttl_ms <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
  AND ($2 IS NOT NULL OR pg_postmaster_start_time() + ttl_ms * interval '1 millisecond' <= clock_timestamp())
ORDER BY id;

-- name: reap_lock
-- Locks the session to reap, if it still exists and, with $2, is still expired. The session may
-- have renewed since the reaper read it. Lock order: sessions before runs.
SELECT node, offer IS NOT NULL FROM sessions
WHERE id = $1
  AND (NOT $2 OR expires_at <= coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
FOR UPDATE;

-- name: reap_queued
-- Clears the owner of queued runs of an ended session. The reaper runs this before it ends anything
-- of the session, so that no such run starts in the place of another.
-- Index: runs_owned.
UPDATE runs SET owner = NULL WHERE owner = $1 AND status = 'queued' AND is_visible;

-- name: register
-- Registers a session with a lease of $4 milliseconds. A remote session has a token ($8). Rejects a
-- program whose schema ($9) is older than the required minimum. Waits for a running migration and
-- sees its result.
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, expires_at, ttl_ms, slots, offer, token, fires)
SELECT $1, $2, $3, moment.now, moment.now, moment.now + $4, $4, $6, $7, $8, $10
FROM (SELECT coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'least_schema' AND value::bigint > $9)
RETURNING id;

-- name: remote
-- Returns a remote worker's session, and the current moment. No row: the session does not exist, is
-- over, or belongs to a node.
SELECT node, token, slots, is_draining,
       coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), ttl_ms
FROM sessions WHERE id = $1 AND token IS NOT NULL;

-- name: remote_claims
-- Returns all claims of a remote session, with their start.
-- Index: tasks_held.
SELECT run_no, runs.id, position, attempt, attempt + given_back, tasks.started_at FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1 ORDER BY run_no, position;

-- name: renew
-- Renews a lease and records the counters of the session. An expired session can renew until the
-- reaper removes it. No row: the session is over and never returns.
UPDATE sessions
SET renewed_at = moment.now, expires_at = moment.now + ttl_ms, tally = $2, asks = $3, contentions = $4,
    last_active_at = CASE WHEN tally IS NOT DISTINCT FROM $2 THEN last_active_at ELSE moment.now END
FROM (SELECT coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE id = $1 RETURNING id;

-- name: session_claims
-- Returns all claims of a session, including those of quarantined runs, and whether the run is
-- quarantined.
-- Index: tasks_held.
SELECT run_no, runs.id, position, attempt, attempt + given_back, EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1;

-- name: session_nodes
-- Returns the node addresses of sessions. Sessions that are over have no row. Uses the primary key.
SELECT id, node FROM sessions WHERE id = ANY ($1);

-- name: session_offer
-- Returns the node address, the offer and the draining flag of a session. No row: the session is
-- over. Locks the session first, as `drain` and the reaper do. A submission for the session does
-- not wait for this lock.
SELECT node, offer, is_draining FROM sessions WHERE id = $1 FOR NO KEY UPDATE;

-- name: session_takes
-- Returns which of these classes these sessions take, pair by pair. Uses the primary key.
SELECT class, session FROM takers JOIN unnest($1, $2) AS wanted (class, session) USING (class, session);

-- name: sessions
-- Returns every session that the reaper has not removed, with its number of claims. Also returns
-- whether its lease has expired, the age of its last renewal, and the length of its lease.
-- Index: tasks_held.
SELECT id, node, (SELECT count(*) FROM tasks WHERE status = 'running' AND session = sessions.id),
       expires_at <= moment.now, pid, greatest(moment.now - renewed_at, 0), expires_at - renewed_at
FROM sessions,
     (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
ORDER BY id;

-- name: sessions_living
-- Returns those of the sessions whose lease has not expired. Compares with the database's clock,
-- unless the caller passes its own ($2). Uses the primary key.
SELECT id, node FROM sessions
WHERE id = ANY ($1) AND expires_at > coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);

-- name: stops
-- Returns the claims that a session must stop, with the run ids and whether the runs are
-- quarantined.
-- Index: tasks_stopping.
SELECT run_no, runs.id, position, attempt, attempt + given_back, stop,
       EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE stop IS NOT NULL AND session = $1 ORDER BY run_no, position;

-- name: taker_add
INSERT INTO takers (class, session, delay, places, pool) SELECT * FROM unnest($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING;

-- name: takers_of_class_remove
-- Removes all sessions from classes whose runs are no longer bound to a node.
DELETE FROM takers WHERE class = ANY ($1);
