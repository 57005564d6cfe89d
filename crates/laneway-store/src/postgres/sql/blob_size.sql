-- Whether all of a blob is there.
SELECT size FROM blobs WHERE hash = $1 AND is_whole;
