-- name: audit_append
-- Appends an audit entry. Takes no locks: a failed transaction leaves its number unused.
INSERT INTO audit (at, by, act, what, origin)
VALUES (coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $2, $3, $4, $5)
RETURNING seq;

-- name: secret_set
-- Creates a secret or replaces its value. The moment is the database's, unless the caller passes
-- its own.
INSERT INTO secrets (name, sealed, set_at, set_by)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $4)
ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at, set_by = excluded.set_by;

-- name: token
-- Returns a token by its id: a single index lookup for each request.
-- Index: tokens_pkey.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at,
    coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM tokens WHERE id = $1;

-- name: token_clear_expired
-- Revokes an expired token, so that a new token can use its name.
-- Index: tokens_by_name.
UPDATE tokens SET revoked_by = 'expiry', revoked_at = expires_at
WHERE name = $1 AND revoked_at IS NULL
    AND expires_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);

-- name: token_make
-- Creates a token. Returns no row if a live token has the name: the unique index on live names
-- rejects it.
INSERT INTO tokens (id, name, role, hash, tail, created_by, created_at, parent, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $8,
    least($9::bigint, coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $10::bigint))
ON CONFLICT DO NOTHING RETURNING created_at;

-- name: token_revoke
-- Revokes the tokens of a name after $4 milliseconds, with all their descendants. Includes a
-- rotated token in its grace period, whose revocation is in the future. Never postpones an earlier
-- revocation. The caller holds `tokens_lock`, so that no descendant is created meanwhile.
WITH RECURSIVE moment (at) AS (
    SELECT coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
), family (id) AS (
    SELECT id FROM tokens, moment WHERE name = $1 AND (revoked_at IS NULL OR revoked_at > moment.at)
    UNION
    SELECT tokens.id FROM family JOIN tokens ON tokens.parent = family.id
)
UPDATE tokens SET revoked_by = $2, revoked_at = moment.at + $4::bigint
FROM family, moment
WHERE tokens.id = family.id AND (tokens.revoked_at IS NULL OR tokens.revoked_at > moment.at + $4::bigint)
RETURNING tokens.id, tokens.name;

-- name: token_used
-- Records the use of a token, unless a use was recorded less than $3 milliseconds ago.
-- Index: tokens_pkey.
UPDATE tokens SET used_at = coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE id = $1 AND (used_at IS NULL
    OR used_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - $3::bigint);

-- name: tokens
-- Lists all tokens for people: live tokens first, then by name. There are few.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at,
    coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM tokens
ORDER BY revoked_at IS NOT NULL, name COLLATE "C", created_at, id;

-- name: tokens_lock
-- Serializes the creation of descendant tokens with revocations. Without the lock, each would miss
-- the other's row. The lock ends with the transaction. Readers of tokens do not acquire it.
SELECT pg_advisory_xact_lock(hashtext('laneway tokens'), hashtext(current_schema()));
