-- The last of a run that goes.
DELETE FROM runs WHERE no = $1;
