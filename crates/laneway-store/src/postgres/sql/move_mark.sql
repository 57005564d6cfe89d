-- A move is unfinished: nobody opens the store.
INSERT INTO meta (key, value) VALUES ('moving_from', $1);
