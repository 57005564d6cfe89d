-- What is sealed, for who has the key.
SELECT sealed FROM secrets WHERE name = $1;
