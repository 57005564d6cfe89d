-- Why a run is set aside, if it is.
SELECT what, why, since FROM quarantine WHERE run_no = ?1;
