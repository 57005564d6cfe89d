-- Keeps what a run takes up as of an event.
INSERT INTO run_bytes (run_no, last_event, bytes) VALUES (?1, ?2, ?3)
ON CONFLICT (run_no) DO UPDATE SET last_event = excluded.last_event, bytes = excluded.bytes;
