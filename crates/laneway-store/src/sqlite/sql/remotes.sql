-- Sessions of workers that are elsewhere, oldest first.
SELECT id FROM sessions WHERE token IS NOT NULL ORDER BY id;
