-- Somebody passed rates. Their limits are locked.
INSERT INTO keys (name, tat) SELECT * FROM unnest($1, $2) ON CONFLICT (name) DO UPDATE SET tat = excluded.tat;
