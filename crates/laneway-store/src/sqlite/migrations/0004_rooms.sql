-- How many tasks of a pool a session may hold at once: those that it has containers for. NULL: as many as it has slots. Tasks of one
-- pool may be of several classes, and share its places.
ALTER TABLE takers ADD COLUMN places INTEGER CHECK (places >= 1);
ALTER TABLE takers ADD COLUMN pool TEXT CHECK ((pool IS NULL) = (places IS NULL));
