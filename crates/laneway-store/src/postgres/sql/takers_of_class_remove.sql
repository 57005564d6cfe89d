-- Nobody takes tasks of these classes any more: they were those of runs that are bound to no node now.
DELETE FROM takers WHERE class = ANY ($1);
