-- Whether any session takes tasks of a class.
SELECT 1 FROM takers WHERE class = ?1 LIMIT 1;
