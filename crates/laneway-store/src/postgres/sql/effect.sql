-- The record of an effect, without what it printed. The run is locked by a statement before this one. Along the primary key.
SELECT status, attempt, session, execution, started_at, token FROM effects
WHERE run_no = $1 AND position = $2 AND name = $3 AND key = $4;
