-- An end has fired.
DELETE FROM firings WHERE run = $1 AND seq = $2 AND workflow = $3 AND key = $4;
