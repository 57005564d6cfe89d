-- What is wanted of a pool of a session, in place of what was wanted of it before. A session that is over is told nothing.
INSERT OR REPLACE INTO pool_wishes (session, name, warm, version) SELECT id, ?2, ?3, ?4 FROM sessions WHERE id = ?1;
