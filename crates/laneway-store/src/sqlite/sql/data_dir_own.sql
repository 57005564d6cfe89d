-- The store keeps its files in NAME.d.
INSERT INTO meta (key, value) VALUES ('data_dir', 'own') ON CONFLICT (key) DO NOTHING;
