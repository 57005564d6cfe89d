-- How often lives of nodes were lost, by node. `no` is the number of a node's last among all losses that ever were: the largest says how
-- many those are, and stays right when names that were lost long ago are forgotten.
CREATE TABLE losses (
    node TEXT PRIMARY KEY,
    lost INTEGER NOT NULL CHECK (lost >= 1),
    no   INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
INSERT INTO losses (node, lost, no)
SELECT node, count(*), max(no)
FROM (SELECT node, row_number() OVER (ORDER BY seq) AS no FROM node_events WHERE name = 'node_lost')
GROUP BY node;
