-- Somebody brings a blob of which all is there: it is not swept before they could name it.
UPDATE blobs SET touched_at = ?2 WHERE hash = ?1 AND is_whole = 1;
