-- name: newest_header
-- A dialog's number and its newest header, NULLs when it has none; no row when there is no such dialog.
SELECT
  d.dialog_no, h.seq, h.turn_head, h.view_base, h.open_turn, h.kind, h.role, h.number, h.calls, h.open_calls, h.response, h.at, h.size,
  h.total, h.digest
FROM dialogs AS d LEFT JOIN LATERAL (
  SELECT * FROM headers AS n WHERE n.dialog_no = d.dialog_no ORDER BY n.seq DESC LIMIT 1
) AS h ON true
WHERE d.dialog_id = %s;

-- name: place
-- Write a header and its body if the dialog still ends where the writer thinks, and tell those who follow it. One row when it was written.
WITH placed AS (
  INSERT INTO headers
  SELECT d.dialog_no, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
  FROM dialogs AS d LEFT JOIN LATERAL (
    SELECT h.seq, h.total, h.digest FROM headers AS h WHERE h.dialog_no = d.dialog_no ORDER BY h.seq DESC LIMIT 1
  ) AS n ON true
  WHERE d.dialog_no = %s AND coalesce(n.seq, -1) = %s AND coalesce(n.total, 0) = %s AND coalesce(n.digest, '') = %s
  RETURNING dialog_no, seq
), kept AS (
  INSERT INTO bodies SELECT dialog_no, seq, %s FROM placed
)
SELECT CASE WHEN f.until > clock_timestamp() THEN pg_notify(%s, p.dialog_no::text) END
FROM placed AS p LEFT JOIN followers AS f USING (dialog_no);

-- name: header_get
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE dialog_no = %s AND seq = %s;

-- name: headers_up
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE dialog_no = %(dialog_no)s AND seq >= %(start)s AND seq < %(stop)s ORDER BY seq LIMIT %(rows)s;

-- name: headers_down
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE dialog_no = %(dialog_no)s AND seq >= %(start)s AND seq < %(stop)s ORDER BY seq DESC LIMIT %(rows)s;

-- name: dialog_end
-- The number of a dialog and how many own entries it holds.
SELECT dialog_no, length FROM dialog_ends WHERE dialog_id = %s;

-- name: body_get
SELECT body FROM bodies WHERE dialog_no = %s AND seq = %s;

-- name: bodies_up
-- A page: so many rows, and no more bytes than given after the first row's.
SELECT h.seq, b.body
FROM headers AS h JOIN bodies AS b USING (dialog_no, seq)
WHERE h.dialog_no = %(dialog_no)s AND h.seq >= %(start)s AND h.seq < %(stop)s AND h.total - h.size <= %(bytes)s + (
  SELECT f.total - f.size FROM headers AS f WHERE f.dialog_no = %(dialog_no)s AND f.seq >= %(start)s ORDER BY f.seq LIMIT 1
)
ORDER BY h.seq LIMIT %(rows)s;

-- name: judged_up
-- A page of what judges an entry: its kind, its body, NULL when that is lost, and the digest of what was written.
SELECT h.seq, b.body, h.kind, h.digest
FROM headers AS h LEFT JOIN bodies AS b USING (dialog_no, seq)
WHERE h.dialog_no = %(dialog_no)s AND h.seq >= %(start)s AND h.seq < %(stop)s AND h.total - h.size <= %(bytes)s + (
  SELECT f.total - f.size FROM headers AS f WHERE f.dialog_no = %(dialog_no)s AND f.seq >= %(start)s ORDER BY f.seq LIMIT 1
)
ORDER BY h.seq LIMIT %(rows)s;

-- name: blob_add
INSERT INTO blobs (digest, data) VALUES (%s, %s) ON CONFLICT (digest) DO NOTHING;

-- name: blob_get
SELECT data FROM blobs WHERE digest = %s;

-- name: blob_has
SELECT 1 FROM blobs WHERE digest = %s;
