-- Who makes a token that comes of another one, and who revokes tokens, do so one after the other: neither would see the other's row.
-- The lock goes with the transaction; whoever looks at tokens does not ask for it.
SELECT pg_advisory_xact_lock(hashtext('laneway tokens'), hashtext(current_schema()));
