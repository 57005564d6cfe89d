-- A new store: which it is.
INSERT INTO meta (key, value) VALUES ('instance', $1);
