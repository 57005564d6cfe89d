-- What a claim has recorded before, if anything: a repeated finish reports it.
SELECT outcome FROM attempts WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4;
