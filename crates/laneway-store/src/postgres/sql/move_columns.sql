-- Tables of the schema and their columns.
SELECT columns.table_name::text, columns.column_name::text, columns.data_type::text
FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE columns.table_schema = current_schema() AND tables.table_type = 'BASE TABLE'
ORDER BY columns.table_name, columns.ordinal_position;
