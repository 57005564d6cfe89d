-- Why runs are set aside, those that are. Along the primary key.
SELECT run_no, what, why, since FROM quarantine WHERE run_no = ANY ($1);
