-- What a server is, whether what we told the connection has arrived, and what is in the schema. One statement is one
-- snapshot: another process may be migrating it just now.
SELECT current_setting('server_version_num')::bigint,
       current_setting('server_version'),
       coalesce(current_setting('laneway.session', true), ''),
       current_schema() IS NOT NULL,
       EXISTS (SELECT 1 FROM pg_catalog.pg_class
               WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relname = 'laneway_migrations'),
       (SELECT count(*) FROM pg_catalog.pg_class
        WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'p', 'v', 'm')
          AND relname IN ('meta', 'workflows', 'sessions', 'runs', 'tasks', 'needs_sets', 'attempts', 'events',
                          'quarantine', 'classes', 'takers', 'paused_workflows', 'limits', 'keys', 'holds', 'orders',
                          'definitions', 'blobs', 'blob_chunks', 'log_chunks', 'artifacts', 'secrets'));
