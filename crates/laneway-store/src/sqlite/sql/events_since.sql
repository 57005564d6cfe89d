-- A page of a run's history, behind a cursor.
SELECT seq, at, name, version, body FROM events WHERE run_no = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3;
