-- The latest moment that was written: time never goes back behind it.
SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'clock';
