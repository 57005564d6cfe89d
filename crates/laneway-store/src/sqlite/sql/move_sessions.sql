-- Sessions that nobody has reaped: a store with one of them is in use.
SELECT node, pid FROM sessions ORDER BY node, id;
