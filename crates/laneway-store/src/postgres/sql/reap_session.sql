-- A session ends, after everything that it held was returned.
DELETE FROM sessions WHERE id = $1;
