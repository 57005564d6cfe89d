-- Who submitted a run, and whose it is.
SELECT submitted_by, owner FROM runs WHERE no = $1;
