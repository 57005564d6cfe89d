-- An entry of the audit log, numbered in the order of commits: there is one writer.
INSERT INTO audit (at, by, act, what, origin) VALUES (?1, ?2, ?3, ?4, ?5);
