-- name: definition_versions
-- Returns the versions of a definition below number $2, newest first. Uses the primary key.
SELECT name, no, version, dir, bundle, applied_at, applied_by FROM definitions WHERE name = $1 AND no < $2
ORDER BY no DESC LIMIT $3;

-- name: definitions_remove
-- Deletes every version of a definition. Keeps its runs and their documents.
DELETE FROM definitions WHERE name = $1;

-- name: document
-- Returns a document exactly as submitted.
SELECT document FROM workflows WHERE version = $1;

-- name: workflow
-- Returns the document from which the store builds a plan.
SELECT name, document FROM workflows WHERE version = $1;

-- name: workflow_paused
-- No row: the workflow is not paused.
SELECT by, since FROM paused_workflows WHERE name = $1;
