-- name: gone_get
SELECT at, receipt_id FROM gone WHERE thing = ? AND name = ?;

-- name: gone_beginning
SELECT at, receipt_id FROM gone WHERE thing = ? AND name >= ? AND name < ? || 'g' ORDER BY name LIMIT 1;

-- name: gone_all
SELECT thing, name, at, receipt_id FROM gone ORDER BY thing, name;

-- name: gone_add
INSERT INTO gone VALUES (?, ?, ?, ?) ON CONFLICT (thing, name) DO NOTHING;

-- name: receipt_put
INSERT INTO receipts (receipt_id, receipt, pending) VALUES (?, ?, ?)
ON CONFLICT (receipt_id) DO UPDATE SET receipt = excluded.receipt, pending = excluded.pending;

-- name: receipts_all
SELECT receipt_id, receipt, pending FROM receipts ORDER BY number;

-- name: file_add
INSERT INTO files VALUES (?, ?) ON CONFLICT (session_no, path) DO NOTHING;

-- name: files_of
SELECT path FROM files WHERE session_no = ? ORDER BY path;

-- name: body_restore
-- A body that was lost is put back as the tombstone of what it was.
INSERT INTO bodies (body_no, body) SELECT body_no, ? FROM headers WHERE id = ?
ON CONFLICT (body_no) DO UPDATE SET body = excluded.body;

-- name: header_set
UPDATE headers SET kind = ?, size = ?, total = ?, digest = ? WHERE id = ?;

-- name: text_remove
DELETE FROM texts WHERE id = ?;

-- name: tokens_remove
DELETE FROM tokens WHERE rowid = ?;

-- name: texts_within
SELECT id FROM texts WHERE id >= ? AND id < ?;

-- name: dialog_clear
UPDATE dialogs SET metadata = '{}' WHERE dialog_id = ?;

-- name: bodies_remove
DELETE FROM bodies WHERE body_no IN (SELECT body_no FROM headers WHERE id >= ? AND id < ?);

-- name: headers_remove
DELETE FROM headers WHERE id >= ? AND id < ?;

-- name: indexed_remove
DELETE FROM indexed WHERE dialog_no = ?;

-- name: dialog_remove
DELETE FROM dialogs WHERE dialog_no = ?;

-- name: sources_remove
DELETE FROM sources WHERE session_no = ?;

-- name: files_remove
DELETE FROM files WHERE session_no = ?;

-- name: session_remove
DELETE FROM sessions WHERE session_no = ?;

-- name: lease_names
SELECT name FROM leases;

-- name: lease_remove
DELETE FROM leases WHERE name = ?;

-- name: sources_naming
SELECT raw, record_index FROM sources;

-- name: blob_remove
DELETE FROM blobs WHERE digest = ?;

-- name: tokens_optimize
-- What was deleted is only marked in the segments of the index until they are merged.
INSERT INTO tokens (tokens) VALUES ('optimize');

-- name: bodies_naming
-- A page of all bodies; of those that may name no payload (palaver.store.erasing.may_name) only the number.
SELECT CASE WHEN instr(body, CAST('"digest"' AS BLOB)) OR instr(body, CAST('"custom_type"' AS BLOB)) THEN body END, body_no
FROM bodies WHERE body_no > ? ORDER BY body_no LIMIT ?;

-- name: written_upto
-- The newest body, and how much was ever erased: receipts and dialogs. While that stays the same, no number of a body is given twice.
SELECT
  (SELECT coalesce(max(body_no), -1) FROM bodies), (SELECT count(*) FROM receipts),
  (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'dialogs') - (SELECT count(*) FROM dialogs);

-- name: blob_time
SELECT at FROM blob_times JOIN blobs USING (blob_no) WHERE digest = ?;

-- name: blob_time_set
INSERT INTO blob_times SELECT blob_no, ? FROM blobs WHERE digest = ?
ON CONFLICT (blob_no) DO UPDATE SET at = excluded.at;

-- name: blobs_with_times
SELECT digest, length(data), at FROM blobs JOIN blob_times USING (blob_no) WHERE digest > ? ORDER BY digest LIMIT ?;
