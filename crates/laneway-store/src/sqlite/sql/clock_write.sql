-- Keeps the moment of a batch that changed something.
UPDATE meta SET value = ?1 WHERE key = 'clock';
