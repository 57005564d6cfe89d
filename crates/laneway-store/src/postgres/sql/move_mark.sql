-- A move is unfinished: the store cannot be opened.
INSERT INTO meta (key, value) VALUES ('moving_from', $1);
