-- A limit that is about to go: what is submitted meanwhile waits, and finds it gone.
SELECT name FROM limits WHERE name = $1 FOR UPDATE;
