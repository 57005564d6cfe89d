-- Tells every node of this database that a store has changed. Never inside a transaction that changes something: at
-- its commit NOTIFY takes a lock that the whole database shares.
SELECT pg_notify('laneway', $1);
