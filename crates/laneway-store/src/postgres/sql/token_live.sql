-- The token that has a name, expired or not: its role, what it came of and when that expires, and the lifetime that it was made with.
-- Index: tokens_by_name.
SELECT id, role, parent, (SELECT expires_at FROM tokens AS source WHERE source.id = tokens.parent), expires_at - created_at
FROM tokens WHERE name = $1 AND revoked_at IS NULL;
