-- No run of a workflow begins or goes on beside this transaction (workflows_hold.sql). What began is seen by the next statement.
SELECT pg_advisory_xact_lock(hashtext('laneway workflow ' || $1::text), hashtext(current_schema()));
