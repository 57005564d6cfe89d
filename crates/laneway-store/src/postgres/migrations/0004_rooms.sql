-- How many tasks of a class a session may hold at once: those that its pool has containers for. NULL: as many as it has slots.
ALTER TABLE takers ADD COLUMN places BIGINT CHECK (places >= 1);
