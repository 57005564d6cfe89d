-- Numbered by the caller under the runs' locks; the primary key refuses a number that was given before.
INSERT INTO events (run_no, seq, at, name, version, body) SELECT * FROM unnest($1, $2, $3, $4, $5, $6);
