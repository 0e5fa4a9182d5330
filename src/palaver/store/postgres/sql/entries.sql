-- name: newest_header
-- A dialog's number and its newest header, NULLs when it has none; no row when there is no such dialog.
SELECT
  d.dialog_no, h.seq, h.turn_head, h.view_base, h.open_turn, h.kind, h.role, h.number, h.calls, h.open_calls, h.response, h.at, h.size,
  h.total, h.digest
FROM dialogs AS d LEFT JOIN LATERAL (
  SELECT * FROM entries AS n WHERE n.dialog_no = d.dialog_no ORDER BY n.seq DESC LIMIT 1
) AS h ON true
WHERE d.dialog_id = %s;

-- name: place_first
-- Write the first entry of a dialog, if it is there, and tell those who follow it. One row when it was written.
INSERT INTO entries AS e
SELECT
  d.dialog_no, 0, %(turn_head)s, %(view_base)s, %(open_turn)s, %(kind)s, %(role)s, %(number)s, %(calls)s, %(open_calls)s, %(response)s,
  %(at)s, %(size)s, %(total)s, %(digest)s, %(body)s
FROM dialogs AS d WHERE d.dialog_no = %(dialog_no)s
RETURNING (
  SELECT pg_notify(current_schema(), f.dialog_no::text) FROM followers AS f
  WHERE f.dialog_no = e.dialog_no AND f.until > clock_timestamp()
);

-- name: place_after
-- Write an entry after the one that the writer knows, if that is there as he knows it; no row when it is not. If another entry follows it
-- already, or is about to, the primary key decides.
INSERT INTO entries AS e
SELECT
  n.dialog_no, n.seq + 1, %(turn_head)s, %(view_base)s, %(open_turn)s, %(kind)s, %(role)s, %(number)s, %(calls)s, %(open_calls)s,
  %(response)s, %(at)s, %(size)s, %(total)s, %(digest)s, %(body)s
FROM entries AS n
WHERE n.dialog_no = %(dialog_no)s AND n.seq = %(after)s AND n.digest = %(after_digest)s AND n.total + %(size)s = %(total)s
RETURNING (
  SELECT pg_notify(current_schema(), f.dialog_no::text) FROM followers AS f
  WHERE f.dialog_no = e.dialog_no AND f.until > clock_timestamp()
);

-- name: header_get
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM entries WHERE dialog_no = %s AND seq = %s;

-- name: headers_up
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM entries WHERE dialog_no = %(dialog_no)s AND seq >= %(start)s AND seq < %(stop)s ORDER BY seq LIMIT %(rows)s;

-- name: headers_down
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM entries WHERE dialog_no = %(dialog_no)s AND seq >= %(start)s AND seq < %(stop)s ORDER BY seq DESC LIMIT %(rows)s;

-- name: headers_holding
-- The kinds are those of the index, and of palaver.log.HOLDING.
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM entries
WHERE dialog_no = %(dialog_no)s AND seq >= %(start)s AND seq < %(stop)s
  AND kind IN ('instructions', 'toolset', 'model_change', 'mode_change', 'pin', 'constraint', 'quarantine')
ORDER BY seq DESC LIMIT %(rows)s;

-- name: headers_of_kind
-- The kinds are those of the index, and of palaver.log.SOUGHT.
SELECT
  seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM entries
WHERE dialog_no = %(dialog_no)s AND kind = %(kind)s AND seq >= %(start)s AND seq < %(stop)s
  AND kind IN ('turn_started', 'inbox', 'invocation')
ORDER BY seq DESC LIMIT %(rows)s;

-- name: dialog_end
-- The number of a dialog and how many own entries it holds.
SELECT dialog_no, length FROM dialog_ends WHERE dialog_id = %s;

-- name: body_get
SELECT body FROM entries WHERE dialog_no = %s AND seq = %s;

-- name: bodies_up
-- A page: so many rows, and no more bytes than given before the last row's. A body that was lost is NULL.
SELECT h.seq, h.body
FROM entries AS h
WHERE h.dialog_no = %(dialog_no)s AND h.seq >= %(start)s AND h.seq < %(stop)s AND h.total - h.size <= %(bytes)s + (
  SELECT f.total - f.size FROM entries AS f WHERE f.dialog_no = %(dialog_no)s AND f.seq >= %(start)s ORDER BY f.seq LIMIT 1
)
ORDER BY h.seq LIMIT %(rows)s;

-- name: judged_up
-- A page of what judges an entry: its kind, its body, NULL when that is lost, and the digest of what was written.
SELECT h.seq, h.body, h.kind, h.digest
FROM entries AS h
WHERE h.dialog_no = %(dialog_no)s AND h.seq >= %(start)s AND h.seq < %(stop)s AND h.total - h.size <= %(bytes)s + (
  SELECT f.total - f.size FROM entries AS f WHERE f.dialog_no = %(dialog_no)s AND f.seq >= %(start)s ORDER BY f.seq LIMIT 1
)
ORDER BY h.seq LIMIT %(rows)s;

-- name: blob_add
INSERT INTO blobs (digest, data) VALUES (%s, %s) ON CONFLICT (digest) DO NOTHING;

-- name: blob_get
SELECT data FROM blobs WHERE digest = %s;

-- name: blob_has
SELECT 1 FROM blobs WHERE digest = %s;

-- name: blob_ids
SELECT digest FROM blobs WHERE digest > %s ORDER BY digest LIMIT %s;

-- name: follower_put
INSERT INTO followers VALUES (%s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (dialog_no) DO UPDATE SET until = greatest(followers.until, excluded.until);

-- name: lease_get
-- A lease, which nobody else changes until the end of the transaction, and the server's time.
INSERT INTO leases VALUES (%s, '', 0, 'epoch') ON CONFLICT (name) DO UPDATE SET name = leases.name
RETURNING holder, token, extract(epoch FROM until)::double precision, extract(epoch FROM clock_timestamp())::double precision;

-- name: lease_set
UPDATE leases SET holder = %s, token = %s, until = to_timestamp(%s) WHERE name = %s;
