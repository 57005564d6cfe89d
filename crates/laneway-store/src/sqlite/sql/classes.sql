-- name: class
SELECT no FROM classes WHERE text = ?1;

-- name: class_add
INSERT INTO classes (text) VALUES (?1);
