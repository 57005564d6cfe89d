-- The store is here again.
DELETE FROM meta WHERE key = 'moved_to';
