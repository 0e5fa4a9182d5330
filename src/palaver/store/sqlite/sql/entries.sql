-- name: newest
-- The number of a dialog and its newest header; all NULL but the number when it has no entry.
SELECT
  d.dialog_no, h.id, h.turn_head, h.view_base, h.open_turn, h.kind, h.role, h.number, h.calls, h.open_calls, h.response, h.at,
  h.size, h.total, h.digest
FROM dialogs AS d LEFT JOIN headers AS h ON h.id = (
  SELECT max(id) FROM headers WHERE id BETWEEN d.dialog_no << 32 AND d.dialog_no << 32 | 0xffffffff
)
WHERE d.dialog_id = ?;

-- name: header_add
INSERT INTO headers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: body_add
INSERT INTO bodies VALUES (?, ?);

-- name: header_get
SELECT
  id, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE id = ?;

-- name: headers_up
SELECT
  id, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE id >= ? AND id < ? ORDER BY id LIMIT ?;

-- name: headers_down
SELECT
  id, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: dialog_end
-- The number of a dialog and how many own entries it holds.
SELECT e.dialog_no, coalesce((e.newest & 0xffffffff) + 1, 0)
FROM dialog_ends AS e JOIN dialogs AS d USING (dialog_no)
WHERE d.dialog_id = ?;

-- name: body_get
SELECT body FROM bodies WHERE id = ?;

-- name: bodies_up
SELECT id, body FROM bodies WHERE id >= ? AND id < ? ORDER BY id LIMIT ?;

-- name: to_verify
SELECT h.id, b.body, h.digest
FROM headers AS h LEFT JOIN bodies AS b USING (id)
WHERE h.id >= ? AND h.id < ? ORDER BY h.id LIMIT ?;

-- name: blob_add
INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING;

-- name: blob_get
SELECT data FROM blobs WHERE digest = ?;

-- name: blob_has
SELECT 1 FROM blobs WHERE digest = ?;
