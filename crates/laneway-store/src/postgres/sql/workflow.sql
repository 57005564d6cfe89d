-- What a plan is made from.
SELECT name, document FROM workflows WHERE version = $1;
