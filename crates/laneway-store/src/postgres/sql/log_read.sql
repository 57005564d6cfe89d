-- Chunks of a log that have something of a range, in order, along the primary key. A chunk has at most 256 KiB.
SELECT start, length, bytes FROM log_chunks
WHERE run_no = $1 AND position = $2 AND attempt = $3 AND start > $4 - 262144 AND start < $5
ORDER BY start;
