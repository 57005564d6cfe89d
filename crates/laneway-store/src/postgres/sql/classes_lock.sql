-- Who makes a class and who begins to take some do so one after the other: neither would see the other's row. The lock
-- goes with the transaction.
SELECT pg_advisory_xact_lock(hashtext('laneway classes'), hashtext(current_schema()));
