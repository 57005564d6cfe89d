-- What a claim has recorded before, if anything: a repeated finish reports it. Along the primary key; the generation tells
-- it from a claim of the same session that was given back, and whose attempt has this number now.
SELECT outcome FROM attempts WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4
  AND attempt + given_back = ?5;
