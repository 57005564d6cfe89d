-- One task of a run that is being submitted.
INSERT INTO tasks (run_no, position, class, status, gate, rank) VALUES (?1, ?2, ?3, 'pending', ?4, ?5);
