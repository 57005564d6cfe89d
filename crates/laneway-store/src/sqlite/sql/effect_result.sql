-- What an effect left behind, of one that has happened. Along the primary key.
SELECT exit_code, stdout, output, lacks FROM effects
WHERE run_no = ?1 AND position = ?2 AND name = ?3 AND key = ?4 AND status = 'done';
