-- Results go, unless they were used since. Along the primary key.
WITH gone AS (
    DELETE FROM cache USING unnest($1, $2) AS given (key, used_at)
    WHERE cache.key = given.key AND cache.last_used_at <= given.used_at
    RETURNING cache.key, cache.bytes
), files AS (DELETE FROM cache_artifacts USING gone WHERE cache_artifacts.key = gone.key),
     layers AS (DELETE FROM cache_layers USING gone WHERE cache_layers.key = gone.key),
     layer_files AS (DELETE FROM cache_layer_files USING gone WHERE cache_layer_files.key = gone.key)
SELECT bytes FROM gone;
