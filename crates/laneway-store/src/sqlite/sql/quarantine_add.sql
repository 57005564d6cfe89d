-- Sets a run aside. The first reason stays.
INSERT INTO quarantine (run_no, what, why, since) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING;
