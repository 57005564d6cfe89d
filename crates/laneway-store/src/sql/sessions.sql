-- name: losses
-- Returns how often each node was lost, latest loss first. `losses_forget` bounds the number of
-- rows. Uses the unique index of `no`.
SELECT node, lost, no FROM losses ORDER BY no DESC;

-- name: losses_forget
-- Deletes losses before the newest $1, except those of nodes that are alive. Node names often
-- contain a process number and never return. Always keeps the newest row, because its number is the
-- total of all losses. The caller holds the lock of the key `nodes`. Uses losses_no_key.
DELETE FROM losses WHERE no <= (SELECT max(no) FROM losses) - $1 AND node NOT IN (SELECT node FROM sessions);

-- name: reap_pools
DELETE FROM pools WHERE session = $1;

-- name: reap_runs
-- Clears the owner of the runs of an ended session. The caller holds the locks of the runs.
-- Index: runs_owned.
UPDATE runs SET owner = NULL WHERE owner = $1;

-- name: reap_session
-- Deletes an ended session. The reaper has returned all its claims before.
DELETE FROM sessions WHERE id = $1;

-- name: reap_wishes
DELETE FROM pool_wishes WHERE session = $1;

-- name: remotes
-- Returns the sessions of remote workers, oldest first. Only these have a token.
SELECT id FROM sessions WHERE token IS NOT NULL ORDER BY id;

-- name: session_node
-- Returns the node address and the lease expiry of a session. The expiry is NULL for a session
-- without a lease. No row: the session is over.
SELECT node, expires_at FROM sessions WHERE id = $1;

-- name: session_reoffer
UPDATE sessions SET offer = $2 WHERE id = $1;

-- name: sessions_of
-- Returns the sessions of node $1, or the session with id $2.
SELECT id FROM sessions WHERE node = $1 OR id = $2 ORDER BY id;

-- name: sessions_offering
-- Returns the offers of sessions that accept tasks of shared runs.
SELECT node, offer FROM sessions WHERE offer IS NOT NULL ORDER BY node, id;

-- name: takers_of_others_remove
-- Stops a session from claiming tasks of shared runs. Keeps the classes of runs that it owns, which
-- are negative.
-- Index: takers_of_session.
DELETE FROM takers WHERE session = $1 AND class > 0;

-- name: takers_remove
-- Stops a session from claiming tasks of any class.
-- Index: takers_of_session.
DELETE FROM takers WHERE session = $1;
