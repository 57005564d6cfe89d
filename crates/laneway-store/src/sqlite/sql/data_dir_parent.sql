-- The store keeps its files in the directory of the database.
DELETE FROM meta WHERE key = 'data_dir';
