-- The store is at another address from here on.
INSERT INTO meta (key, value) VALUES ('moved_to', ?1);
