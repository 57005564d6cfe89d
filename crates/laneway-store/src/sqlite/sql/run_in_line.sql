-- Whether a run, or one of its tasks, stands in a line with those of other runs.
SELECT EXISTS (SELECT 1 FROM runs WHERE no = ?1 AND status = 'queued')
    OR EXISTS (SELECT 1 FROM tasks WHERE run_no = ?1 AND gate_key IS NOT NULL);
