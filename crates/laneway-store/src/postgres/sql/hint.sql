-- Tells every node of this database that a store has changed, behind the transaction that changed it and never in it: at
-- its commit NOTIFY takes a lock that the whole database shares. A hint need not be on disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('laneway', $1);
