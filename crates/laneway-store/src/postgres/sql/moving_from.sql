-- The instance whose move into this store is unfinished.
SELECT value FROM meta WHERE key = 'moving_from';
