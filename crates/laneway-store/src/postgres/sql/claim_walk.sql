-- How many entries of tasks_available this connection's scans have read since the server last collected its counts, dead
-- ones too, and the time in microseconds. Two of these around a claim give the cost of its walk.
SELECT pg_stat_get_xact_tuples_returned('tasks_available'::regclass), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
