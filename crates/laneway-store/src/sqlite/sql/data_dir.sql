-- Returns a row if the store keeps its files in NAME.d.
SELECT value FROM meta WHERE key = 'data_dir';
