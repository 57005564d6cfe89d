-- What a session takes. Index: takers_of_session.
SELECT class FROM takers WHERE session = ?1;
