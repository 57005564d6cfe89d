-- Why a layer is only on its node (docs/design/files.md): the size of what its step saw and left, the limit, and the largest
-- files, as JSON. Empty for layers that are in the store.
ALTER TABLE layers ADD COLUMN oversize TEXT;
