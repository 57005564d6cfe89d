-- A new store: which it is, and that nothing was written yet.
INSERT INTO meta (key, value) VALUES ('instance', ?1), ('clock', '0');
