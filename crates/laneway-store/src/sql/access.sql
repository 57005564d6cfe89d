-- name: audit
-- Returns audit entries below number $1, newest first. Uses the primary key.
SELECT seq, at, by, act, what, origin FROM audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: secret
-- Returns the sealed value. The caller needs the key to open it.
SELECT sealed FROM secrets WHERE name = $1;

-- name: secret_remove
-- Returns a row if the secret existed.
DELETE FROM secrets WHERE name = $1 RETURNING 1;

-- name: secrets
-- Lists secrets without their values.
SELECT name, set_at, set_by FROM secrets ORDER BY name;

-- name: token_live
-- Returns the unrevoked token of a name, even if the token has expired. The last two columns are
-- the expiry of its parent token and the token's own lifetime.
-- Index: tokens_by_name.
SELECT id, role, parent, (SELECT expires_at FROM tokens AS source WHERE source.id = tokens.parent), expires_at - created_at
FROM tokens WHERE name = $1 AND revoked_at IS NULL;
