-- What was wanted of a session that ends.
DELETE FROM pool_wishes WHERE session = ?1;
