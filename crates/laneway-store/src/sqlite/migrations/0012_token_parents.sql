-- Which token made the code that a token came of (docs/design/service.md): the one is revoked with the other.
ALTER TABLE tokens ADD COLUMN parent TEXT;
CREATE INDEX tokens_by_parent ON tokens (parent) WHERE parent IS NOT NULL;
