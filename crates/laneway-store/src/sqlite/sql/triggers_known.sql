-- Whether a workflow has triggers.
SELECT count(*) FROM triggers WHERE workflow = ?1;
