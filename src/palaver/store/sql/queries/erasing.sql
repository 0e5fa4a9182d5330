-- name: gone_get
SELECT at, receipt_id FROM {s}gone WHERE thing = :thing AND name = :name;

-- name: gone_beginning
SELECT at, receipt_id FROM {s}gone WHERE thing = :thing AND name >= :name AND name < :beyond ORDER BY name LIMIT 1;

-- name: gone_all
SELECT thing, name, at, receipt_id FROM {s}gone ORDER BY thing, name;

-- name: gone_add
INSERT INTO {s}gone VALUES (:thing, :name, :at, :receipt_id) ON CONFLICT (thing, name) DO NOTHING;

-- name: receipt_put
INSERT INTO {s}receipts (receipt_id, receipt, pending) VALUES (:receipt_id, :receipt, :pending)
ON CONFLICT (receipt_id) DO UPDATE SET receipt = excluded.receipt, pending = excluded.pending;

-- name: receipts_all
SELECT receipt_id, receipt, pending FROM {s}receipts ORDER BY number;

-- name: file_put
INSERT INTO {s}files VALUES (:session_no, :path, :digest, :inode)
ON CONFLICT (session_no, path) DO UPDATE SET digest = excluded.digest, inode = excluded.inode;

-- name: file_remove
DELETE FROM {s}files WHERE session_no = :session_no AND path = :path;

-- name: files_of
SELECT path, digest, inode FROM {s}files WHERE session_no = :session_no ORDER BY path;

-- name: dialog_clear
UPDATE {s}dialogs SET metadata = '{}' WHERE dialog_id = :dialog_id;

-- name: dialog_lock_alone
-- Nobody else appends to the dialog, or indexes it, until the end of the transaction.
SELECT session_no, dialog_no FROM {s}dialogs WHERE dialog_id = :dialog_id {for_erasure};

-- name: dialog_remove
DELETE FROM {s}dialogs WHERE dialog_no = :dialog_no;

-- name: indexed_remove
DELETE FROM {s}indexed WHERE session_no = :session_no AND dialog_no = :dialog_no;

-- name: dialog_references_remove
DELETE FROM {s}payload_refs WHERE session_no = :session_no AND dialog_no = :dialog_no;

-- name: session_references_remove
DELETE FROM {s}payload_refs WHERE session_no = :session_no;

-- name: sources_remove
DELETE FROM {s}sources WHERE session_no = :session_no;

-- name: files_remove
DELETE FROM {s}files WHERE session_no = :session_no;

-- name: activity_remove
DELETE FROM {s}activity WHERE session_no = :session_no;

-- name: session_remove
DELETE FROM {s}sessions WHERE session_no = :session_no;

-- name: blob_lock
-- A payload that nobody stores again until the end of the transaction.
SELECT 1 FROM {s}blobs WHERE digest = :digest {for_erasure};

-- name: blob_named
SELECT 1 FROM {s}payload_refs WHERE digest = :digest LIMIT 1;

-- name: blob_remove
DELETE FROM {s}blobs WHERE digest = :digest;

-- name: blob_bytes_remove
DELETE FROM {s}blob_bytes WHERE digest = :digest;

-- name: strays
SELECT b.digest, b.size, b.put_at FROM {s}blobs AS b
WHERE b.digest > :after AND NOT EXISTS (SELECT 1 FROM {s}payload_refs AS r WHERE r.digest = b.digest)
ORDER BY b.digest LIMIT :rows;
