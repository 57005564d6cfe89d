-- name: instance
-- Returns the permanent id of this store.
SELECT value FROM meta WHERE key = 'instance';
