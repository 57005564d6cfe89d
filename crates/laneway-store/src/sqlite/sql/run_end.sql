-- How a run stands, and why.
SELECT status, reason FROM runs WHERE no = ?1;
