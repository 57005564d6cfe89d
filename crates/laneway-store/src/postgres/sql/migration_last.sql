-- Which schema this is; 0 before the first migration.
SELECT coalesce(max(version), 0) FROM laneway_migrations;
