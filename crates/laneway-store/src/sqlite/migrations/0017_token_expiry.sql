-- When a token expires, and when it was last used, to the minute (docs/design/service.md).
ALTER TABLE tokens ADD COLUMN expires_at INTEGER;
ALTER TABLE tokens ADD COLUMN used_at INTEGER;

-- Signatures of webhooks that sign the body alone, each with the delivery that first carried it: the same body under another
-- name is a replay (docs/design/triggers.md).
CREATE TABLE webhook_signatures (
    path        TEXT NOT NULL,
    signature   BLOB NOT NULL CHECK (length(signature) = 32),
    delivery    TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (path, signature)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_signatures_by_age ON webhook_signatures (received_at);
