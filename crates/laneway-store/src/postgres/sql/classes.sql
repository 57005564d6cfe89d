-- Every class that a task was ever of: few.
SELECT no, text FROM classes;
