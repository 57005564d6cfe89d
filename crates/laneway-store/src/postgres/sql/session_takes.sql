-- Which of these classes these sessions take, pair by pair. Along the primary key.
SELECT class, session FROM takers JOIN unnest($1, $2) AS wanted (class, session) USING (class, session);
