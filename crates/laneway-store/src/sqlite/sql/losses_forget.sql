-- Of losses before the newest ?1, only those of nodes that live stay: names often have the number of a process, and never come back.
-- The newest stays, whatever happens: it says how many there were. Along the unique index of `no`.
DELETE FROM losses WHERE no <= (SELECT max(no) FROM losses) - ?1 AND node NOT IN (SELECT node FROM sessions);
