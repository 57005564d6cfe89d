-- Which backend this connection is: notifications name theirs.
SELECT pg_backend_pid();
