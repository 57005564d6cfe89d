-- Tables of the database and their columns.
SELECT tables.name, columns.name
FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' ORDER BY tables.name, columns.cid;
