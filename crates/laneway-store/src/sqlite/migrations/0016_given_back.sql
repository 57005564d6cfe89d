-- Claims of a task that their holders gave back before anything was executed. They are no attempts: `attempt` numbers executions, and a
-- give-back takes its number back. The generation of a claim, which is what fences, is `attempt + given_back`: it grows with every claim,
-- also with one that an older program makes, which knows of `attempt` alone.
ALTER TABLE tasks ADD COLUMN given_back INTEGER NOT NULL DEFAULT 0;
-- Of an attempt that has ended: the same, as of its claim.
ALTER TABLE attempts ADD COLUMN given_back INTEGER NOT NULL DEFAULT 0;
