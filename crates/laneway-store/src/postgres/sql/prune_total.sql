-- What all runs that were measured take up. One may be gone since.
SELECT coalesce(sum(bytes), 0)::bigint FROM run_bytes JOIN runs ON no = run_no;
