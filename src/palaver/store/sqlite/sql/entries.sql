-- name: newest_header
SELECT
  id & 0xffffffff, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1;

-- name: body_add
INSERT INTO bodies (body) VALUES (?);

-- name: header_add
-- Right after its body was added.
INSERT INTO headers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, last_insert_rowid());

-- name: header_get
SELECT
  id & 0xffffffff, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE id = ?;

-- name: headers_up
SELECT
  id & 0xffffffff, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE id >= ? AND id < ? ORDER BY id LIMIT ?;

-- name: headers_down
SELECT
  id & 0xffffffff, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: headers_holding
-- The kinds are those of the index, and of palaver.log.HOLDING.
SELECT
  id & 0xffffffff, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers INDEXED BY headers_holding
WHERE id >= ? AND id < ? AND kind IN ('instructions', 'toolset', 'model_change', 'mode_change', 'pin', 'constraint', 'quarantine')
ORDER BY id DESC LIMIT ?;

-- name: headers_of_kind
-- The kinds are those of the index, and of palaver.log.SOUGHT.
SELECT
  id & 0xffffffff, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest
FROM headers INDEXED BY headers_sought
WHERE kind IN ('turn_started', 'inbox', 'invocation') AND kind = ?4 AND id >= ?1 AND id < ?2
ORDER BY id DESC LIMIT ?3;

-- name: dialog_end
-- The number of a dialog and how many own entries it holds.
SELECT dialog_no, coalesce((newest & 0xffffffff) + 1, 0) FROM dialog_ends WHERE dialog_id = ?;

-- name: body_get
SELECT (SELECT body FROM bodies AS b WHERE b.body_no = h.body_no) FROM headers AS h WHERE h.id = ?;

-- name: bodies_up
SELECT h.id & 0xffffffff, b.body
FROM headers AS h JOIN bodies AS b USING (body_no)
WHERE h.id >= ? AND h.id < ? ORDER BY h.id LIMIT ?;

-- name: to_verify
SELECT h.id & 0xffffffff, b.body, h.digest
FROM headers AS h LEFT JOIN bodies AS b USING (body_no)
WHERE h.id >= ? AND h.id < ? ORDER BY h.id LIMIT ?;

-- name: blob_add
INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING;

-- name: blob_get
SELECT data FROM blobs WHERE digest = ?;

-- name: blob_has
SELECT 1 FROM blobs WHERE digest = ?;

-- name: blob_ids
SELECT digest FROM blobs WHERE digest > ? ORDER BY digest LIMIT ?;
