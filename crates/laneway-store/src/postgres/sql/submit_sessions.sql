-- The nodes of sessions that submit. Their rows stay as long as this transaction: none of them can be reaped before its
-- runs are there to be reaped with it. Their renewals are not held up. Along the primary key.
SELECT id, node FROM sessions WHERE id = ANY ($1) ORDER BY id FOR KEY SHARE;
