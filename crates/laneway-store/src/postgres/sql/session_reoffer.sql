-- What a session has to offer from here on.
UPDATE sessions SET offer = $2 WHERE id = $1;
