-- name: gone_get
SELECT at, receipt_id FROM gone WHERE thing = %s AND name = %s;

-- name: gone_beginning
SELECT at, receipt_id FROM gone WHERE thing = %s AND name >= %s AND name < %s || 'g' ORDER BY name LIMIT 1;

-- name: gone_all
SELECT thing, name, at, receipt_id FROM gone ORDER BY thing, name;

-- name: gone_add
INSERT INTO gone VALUES (%s, %s, %s, %s) ON CONFLICT (thing, name) DO NOTHING;

-- name: receipt_put
INSERT INTO receipts (receipt_id, receipt, pending) VALUES (%s, %s, %s)
ON CONFLICT (receipt_id) DO UPDATE SET receipt = excluded.receipt, pending = excluded.pending;

-- name: receipts_all
SELECT receipt_id, receipt, pending FROM receipts ORDER BY number;

-- name: file_add
INSERT INTO files VALUES (%s, %s) ON CONFLICT (session_no, path) DO NOTHING;

-- name: files_of
SELECT path FROM files WHERE session_no = %s ORDER BY path;

-- name: entry_set
UPDATE entries SET kind = %s, size = %s, total = %s, digest = %s, body = %s WHERE dialog_no = %s AND seq = %s;

-- name: totals_shift
UPDATE entries SET total = total + %s WHERE dialog_no = %s AND seq > %s;

-- name: text_remove
DELETE FROM texts WHERE dialog_no = %s AND seq = %s;

-- name: tokens_remove
DELETE FROM tokens WHERE dialog_no = %s AND seq = %s;

-- name: dialog_clear
UPDATE dialogs SET metadata = '{}' WHERE dialog_id = %s;

-- name: dialog_empty
WITH a AS (DELETE FROM texts WHERE dialog_no = %(dialog_no)s), b AS (DELETE FROM tokens WHERE dialog_no = %(dialog_no)s),
  c AS (DELETE FROM indexed WHERE dialog_no = %(dialog_no)s), d AS (DELETE FROM followers WHERE dialog_no = %(dialog_no)s)
DELETE FROM entries WHERE dialog_no = %(dialog_no)s;

-- name: dialog_remove
DELETE FROM dialogs WHERE dialog_no = %s;

-- name: sources_remove
DELETE FROM sources WHERE session_no = %s;

-- name: files_remove
DELETE FROM files WHERE session_no = %s;

-- name: session_remove
DELETE FROM sessions WHERE session_no = %s;

-- name: lease_names
SELECT name FROM leases;

-- name: lease_remove
DELETE FROM leases WHERE name = %s;

-- name: bodies_naming
-- A page of all entries; of those that may name any payload (palaver.store.erasing.may_name) the body.
SELECT CASE WHEN position('"digest"'::bytea IN body) > 0 OR position('"custom_type"'::bytea IN body) > 0 THEN body END, dialog_no, seq
FROM entries WHERE (dialog_no, seq) > (%s, %s) ORDER BY dialog_no, seq LIMIT %s;

-- name: written_upto
-- The oldest transaction that is still under way: whatever is not there yet is written by it or by a later one.
SELECT txid_snapshot_xmin(txid_current_snapshot());

-- name: bodies_naming_since
-- Bodies that may name payloads, of rows that this transaction or a later one has written. A row that is older than two thousand million
-- transactions may look new: then it is read once more.
SELECT body FROM entries
WHERE age(xmin) <= age(%s::xid) AND (position('"digest"'::bytea IN body) > 0 OR position('"custom_type"'::bytea IN body) > 0);

-- name: sources_naming
SELECT raw, record_index FROM sources;

-- name: blob_remove
DELETE FROM blobs WHERE digest = %s;

-- name: rewrite
-- Only a table that is written anew holds none of the rows that were deleted from it. The planner's statistics quoted what they were made from
-- before format 5 forbade it; whoever is not the owner of the database passes them over.
VACUUM (FULL) entries, texts, tokens, blobs, sources, sessions, dialogs, indexed, files, leases, receipts, gone, pg_catalog.pg_statistic;

-- name: vacuum
VACUUM entries, texts, tokens, blobs, sources, sessions, dialogs, indexed, files, leases, receipts, gone;

-- name: rewrite_payloads
VACUUM (FULL) blobs;

-- name: vacuum_payloads
VACUUM blobs;

-- name: blob_fresh
SELECT put_at <= clock_timestamp() AND put_at > clock_timestamp() - make_interval(secs => %s) FROM blobs WHERE digest = %s;

-- name: blob_touch
UPDATE blobs SET put_at = clock_timestamp() WHERE digest = %s;

-- name: blobs_with_times
SELECT digest, octet_length(data), extract(epoch FROM clock_timestamp() - put_at)::double precision FROM blobs
WHERE digest > %s ORDER BY digest LIMIT %s;

-- name: blobs_older
SELECT digest FROM blobs WHERE put_at <= clock_timestamp() - make_interval(secs => %s) AND digest = ANY(%s);
