-- Tasks of a run that wait for something but what they need, with what orders them: their rank, or since when they are parked. Of its
-- first ?2, of ?2 that are available or run, of the first ?3 that are parked, and of ?3 that wait for a place in it.
-- Index: tasks_parked, tasks_live, tasks_waiting. Along the primary key.
SELECT position, status, gate, gate_key, CASE WHEN status = 'parked' THEN started_at ELSE rank END
FROM (
    SELECT * FROM (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = ?1 ORDER BY position LIMIT ?2)
    UNION
    SELECT * FROM (
        SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks INDEXED BY tasks_live
        WHERE run_no = ?1 AND status IN ('available', 'running') LIMIT ?2
    )
    UNION
    SELECT * FROM (
        SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks INDEXED BY tasks_parked
        WHERE run_no = ?1 AND status = 'parked' ORDER BY position LIMIT ?3
    )
    UNION
    SELECT * FROM (
        SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks INDEXED BY tasks_waiting
        WHERE run_no = ?1 AND gate = 'max_parallel' ORDER BY rank, position LIMIT ?3
    )
)
WHERE CASE status
          WHEN 'parked' THEN wait IS NOT NULL AND started_at IS NOT NULL
          WHEN 'available' THEN rank IS NOT NULL
          WHEN 'pending' THEN rank IS NOT NULL AND gate NOT IN ('needs', 'run_at', 'group', 'level')
          ELSE 0 END;
