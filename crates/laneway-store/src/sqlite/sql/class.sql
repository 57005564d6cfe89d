-- A class by its text.
SELECT no FROM classes WHERE text = ?1;
