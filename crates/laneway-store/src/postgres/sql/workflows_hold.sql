-- Whoever lets runs of workflows begin, and whoever pauses one of these, come one after the other: a pause would not see the
-- run that is about to be, nor that one the pause. Any number may let runs begin side by side. In the order of the names, so
-- that nobody waits in a circle; before any run is locked. The locks go with the transaction.
SELECT pg_advisory_xact_lock_shared(hashtext('laneway workflow ' || name), hashtext(current_schema()))
FROM (SELECT DISTINCT name FROM unnest($1::text[]) AS names (name) ORDER BY name) AS sorted;
