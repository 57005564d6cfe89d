-- How many tasks hold a key. The one writer is its lock.
SELECT count(*) FROM holds WHERE key = ?1;
