-- One transaction that takes as long as it takes: both limits are those of verbs.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
