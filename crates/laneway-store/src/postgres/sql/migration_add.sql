-- A migration was applied, in this transaction.
INSERT INTO laneway_migrations (version) VALUES ($1);
