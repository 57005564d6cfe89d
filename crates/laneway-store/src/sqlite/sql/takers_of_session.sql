-- What a session takes, and how reluctantly. Index: takers_of_session.
SELECT class, delay FROM takers WHERE session = ?1;
