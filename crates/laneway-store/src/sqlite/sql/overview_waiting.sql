-- Tasks of a run that wait for something but what they need, of the first ?2, with what orders them: their rank, or since when they
-- are parked. Along the primary key.
SELECT position, status, gate, gate_key, CASE WHEN status = 'parked' THEN started_at ELSE rank END
FROM (SELECT * FROM tasks WHERE run_no = ?1 ORDER BY position LIMIT ?2)
WHERE CASE status
          WHEN 'parked' THEN wait IS NOT NULL AND started_at IS NOT NULL
          WHEN 'available' THEN rank IS NOT NULL
          WHEN 'pending' THEN rank IS NOT NULL AND gate NOT IN ('needs', 'run_at', 'group', 'level')
          ELSE 0 END;
