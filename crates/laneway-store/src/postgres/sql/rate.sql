-- When the next may pass rates.
SELECT name, tat FROM keys WHERE name = ANY ($1) AND tat IS NOT NULL;
