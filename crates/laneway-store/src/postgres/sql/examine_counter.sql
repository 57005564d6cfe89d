-- What a run counts for itself.
SELECT unsettled FROM runs WHERE no = $1;
