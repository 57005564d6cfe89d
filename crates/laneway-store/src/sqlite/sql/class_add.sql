-- A class of which no task was before.
INSERT INTO classes (text) VALUES (?1);
