-- Locks keys in the order of their names, and makes a row for each that has none. One statement:
-- rows made before others are locked would be held out of order. `WHERE false` locks the row of a
-- conflict and leaves it as it is. Holders are counted in the next statement: in this one they
-- would be as of before the wait, and a key would be over-granted.
INSERT INTO keys (name) SELECT name FROM unnest($1) AS wanted (name) ORDER BY name
ON CONFLICT (name) DO UPDATE SET tat = keys.tat WHERE false;
