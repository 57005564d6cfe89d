-- When somebody last brought a blob of which all is there.
SELECT touched_at FROM blobs WHERE hash = ?1 AND is_whole = 1;
