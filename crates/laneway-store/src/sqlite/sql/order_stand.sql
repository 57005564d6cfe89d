-- A task stands in its order until it has ended.
INSERT INTO orders (key, version, run_no, position) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING;
