-- Results were taken so many times each. Those that somebody has his hands on, or that are gone, are left out: nobody waits for
-- a count.
UPDATE cache SET hits = hits + given.times,
    last_used_at = greatest(last_used_at, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
FROM (SELECT cache.key, given.times FROM cache JOIN unnest($1, $2) AS given (key, times) USING (key)
      ORDER BY cache.key FOR UPDATE OF cache SKIP LOCKED) AS given
WHERE cache.key = given.key;
