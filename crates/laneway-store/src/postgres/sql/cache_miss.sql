-- Why a task was executed. Along the primary key.
SELECT attempt, body FROM cache_misses WHERE run_no = $1 AND position = $2;
