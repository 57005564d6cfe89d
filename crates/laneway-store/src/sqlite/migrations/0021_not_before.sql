-- Until when a run waits that was submitted for later. Empty once that moment has come, or the run has ended before.
ALTER TABLE runs ADD COLUMN not_before INTEGER;
CREATE INDEX runs_for_later ON runs (not_before) WHERE not_before IS NOT NULL;
