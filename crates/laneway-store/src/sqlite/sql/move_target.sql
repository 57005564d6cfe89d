-- Where the store went.
SELECT value FROM meta WHERE key = 'moved_to';
