-- Which migration a program must know at the least, to register a session here.
INSERT INTO meta (key, value) VALUES ('least_schema', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
