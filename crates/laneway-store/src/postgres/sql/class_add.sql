-- Classes of which no task was before. The classes are locked.
INSERT INTO classes (text) SELECT unnest($1) ON CONFLICT DO NOTHING RETURNING no, text;
