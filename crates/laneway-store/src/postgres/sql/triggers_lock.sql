-- Workflows that come after others are applied one after the other: two that lead to each other would each not see the other's row.
-- The lock goes with the transaction.
SELECT pg_advisory_xact_lock(hashtext('laneway triggers'), hashtext(current_schema()));
