-- How far a run has come that goes level by level (JSON): its next level, the checkpoint of those before it, and where it is to be
-- held up again.
ALTER TABLE runs ADD COLUMN levels TEXT;
