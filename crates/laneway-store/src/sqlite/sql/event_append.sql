-- Numbered by the caller under the run's row; the primary key refuses a number that was given before.
INSERT INTO events (run_no, seq, at, name, version, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
