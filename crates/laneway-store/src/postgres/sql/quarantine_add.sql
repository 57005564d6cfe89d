-- Sets a run aside. The first reason stays.
INSERT INTO quarantine (run_no, what, why, since)
VALUES ($1, $2, $3, coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT DO NOTHING RETURNING run_no;
