-- Everything that is set aside, with the id of its run as far as there is one.
SELECT quarantine.run_no, runs.id, what, why, since
FROM quarantine LEFT JOIN runs ON runs.no = quarantine.run_no ORDER BY quarantine.run_no;
