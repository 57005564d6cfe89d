-- Of some classes, those whose tasks any session takes.
SELECT DISTINCT class FROM takers WHERE class = ANY ($1);
