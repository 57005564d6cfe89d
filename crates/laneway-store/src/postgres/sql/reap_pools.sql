-- The pools of a session that ends.
DELETE FROM pools WHERE session = $1;
