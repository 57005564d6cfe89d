-- Whether a session takes tasks of a class. Along the primary key.
SELECT 1 FROM takers WHERE class = ?1 AND session = ?2;
