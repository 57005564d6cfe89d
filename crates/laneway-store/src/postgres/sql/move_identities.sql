-- Columns whose values are given by a sequence.
SELECT table_name::text, column_name::text FROM information_schema.columns
WHERE table_schema = current_schema() AND is_identity = 'YES';
