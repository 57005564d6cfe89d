-- Nothing of a workflow starts from here on.
INSERT INTO paused_workflows (name, by, since) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
