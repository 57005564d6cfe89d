-- Sessions behind a reap: each is of a process that uses the store.
SELECT node, pid FROM sessions ORDER BY node, id;
