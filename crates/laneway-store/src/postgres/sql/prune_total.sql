-- What all runs that were measured take up. One may be gone since, or be going.
SELECT coalesce(sum(bytes), 0)::bigint FROM run_bytes JOIN runs ON no = run_no WHERE is_visible;
