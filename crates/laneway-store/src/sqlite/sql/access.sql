-- name: audit_append
-- Appends an audit entry. Numbers follow the order of commits, because SQLite has a single writer.
INSERT INTO audit (at, by, act, what, origin) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: secret_set
-- Creates a secret or replaces its value.
INSERT INTO secrets (name, sealed, set_at, set_by) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at, set_by = excluded.set_by;

-- name: secrets_count
SELECT count(*) FROM secrets;

-- name: token
-- Returns a token by its id: a single lookup along the primary key for each request.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at FROM tokens WHERE id = ?1;

-- name: token_clear_expired
-- Revokes an expired token, so that a new token can use its name.
-- Index: tokens_by_name.
UPDATE tokens SET revoked_by = 'expiry', revoked_at = expires_at
WHERE name = ?1 AND revoked_at IS NULL AND expires_at <= ?2;

-- name: token_make
-- Creates a token. Has no effect if a live token has the name.
INSERT INTO tokens (id, name, role, hash, tail, created_by, created_at, parent, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO NOTHING;

-- name: token_revoke
-- Revokes the tokens of a name at ?4, with all their descendants. Includes a rotated token in its
-- grace period, whose revocation is after now (?3). Never postpones an earlier revocation.
UPDATE tokens SET revoked_by = ?2, revoked_at = ?4
WHERE (revoked_at IS NULL OR revoked_at > ?4) AND id IN (
    WITH RECURSIVE family (id) AS (
        SELECT id FROM tokens WHERE name = ?1 AND (revoked_at IS NULL OR revoked_at > ?3)
        UNION
        SELECT tokens.id FROM family JOIN tokens ON tokens.parent = family.id
    )
    SELECT id FROM family
)
RETURNING id, name;

-- name: token_used
-- Records the use of a token, unless a use was recorded less than ?3 milliseconds ago.
UPDATE tokens SET used_at = ?2 WHERE id = ?1 AND (used_at IS NULL OR used_at <= ?2 - ?3);

-- name: tokens
-- Lists all tokens for people: live tokens first, then by name. There are few.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at FROM tokens
ORDER BY revoked_at IS NOT NULL, name, created_at, id;
