-- The last number that was given, of tables that never give one twice.
SELECT name, seq FROM sqlite_sequence;
