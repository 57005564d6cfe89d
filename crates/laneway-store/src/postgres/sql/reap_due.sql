-- In how many milliseconds the next lease ends of those that are not ours ($1); 0 or less for one that has ended.
SELECT min(expires_at) - coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM sessions WHERE id <> ALL ($1);
