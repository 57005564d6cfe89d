-- A class by its number.
SELECT text FROM classes WHERE no = $1;
