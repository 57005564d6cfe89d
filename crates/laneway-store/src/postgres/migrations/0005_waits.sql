-- Tasks that wait for a signal or a moment: what is known of that (JSON), and when a parked one is to be looked at, if nobody
-- signals it before. Of all that are parked only the index knows the next.
ALTER TABLE tasks ADD COLUMN wait TEXT;
ALTER TABLE tasks ADD COLUMN due_at BIGINT CHECK (due_at IS NULL OR status = 'parked');
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
