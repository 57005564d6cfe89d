-- name: class_text
SELECT text FROM classes WHERE no = $1;

-- name: classes
-- Returns every class that ever had a task. The table stays small.
SELECT no, text FROM classes;
