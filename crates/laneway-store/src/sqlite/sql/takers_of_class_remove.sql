-- Nobody takes tasks of a class any more: it was that of a run that is bound to no node now.
DELETE FROM takers WHERE class = ?1;
