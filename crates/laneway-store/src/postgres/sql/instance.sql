-- Which store this is, for ever.
SELECT value FROM meta WHERE key = 'instance';
