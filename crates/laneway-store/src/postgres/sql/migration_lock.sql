-- One process at a time migrates a schema; the lock goes with the transaction, so that a pooler does no harm.
SELECT pg_advisory_xact_lock(hashtext('laneway'), hashtext(current_schema()));
