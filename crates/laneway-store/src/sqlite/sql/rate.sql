-- When the next may pass a rate.
SELECT tat FROM keys WHERE name = ?1;
