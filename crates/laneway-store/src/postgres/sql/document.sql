-- A document as it was submitted.
SELECT document FROM workflows WHERE version = $1;
