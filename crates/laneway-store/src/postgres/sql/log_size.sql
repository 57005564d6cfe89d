-- How long a log is, and whether its node was lost.
SELECT coalesce((SELECT start + length FROM log_chunks WHERE run_no = $1 AND position = $2 AND attempt = $3
                 ORDER BY start DESC LIMIT 1), 0),
       EXISTS (SELECT 1 FROM attempts WHERE run_no = $1 AND position = $2 AND attempt = $3 AND outcome = 'lost');
