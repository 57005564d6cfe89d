-- Somebody passed a rate.
INSERT INTO keys (name, tat) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET tat = excluded.tat;
