-- The store keeps its identity.
UPDATE meta SET value = $1 WHERE key = 'instance';
