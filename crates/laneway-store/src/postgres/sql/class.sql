-- Classes by their texts.
SELECT no, text FROM classes WHERE text = ANY ($1);
