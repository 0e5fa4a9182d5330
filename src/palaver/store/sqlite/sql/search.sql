-- name: lag
SELECT coalesce(sum(coalesce((e.newest & 0xffffffff) + 1, 0) - coalesce(i.upto, 0)), 0)
FROM dialog_ends AS e LEFT JOIN indexed AS i USING (dialog_no);

-- name: behind
-- The dialogs that have entries beyond their watermark: number, watermark, length.
SELECT e.dialog_no, coalesce(i.upto, 0), (e.newest & 0xffffffff) + 1
FROM dialog_ends AS e LEFT JOIN indexed AS i USING (dialog_no)
WHERE e.newest & 0xffffffff >= coalesce(i.upto, 0)
ORDER BY e.dialog_no;

-- name: behind_in
-- The same of one session.
SELECT e.dialog_no, coalesce(i.upto, 0), (e.newest & 0xffffffff) + 1
FROM dialog_ends AS e LEFT JOIN indexed AS i USING (dialog_no)
WHERE e.session_no = (SELECT session_no FROM sessions WHERE session_id = ?) AND e.newest & 0xffffffff >= coalesce(i.upto, 0)
ORDER BY e.dialog_no;

-- name: watermark_get
SELECT upto FROM indexed WHERE dialog_no = ?;

-- name: watermark_set
INSERT INTO indexed VALUES (?, ?) ON CONFLICT (dialog_no) DO UPDATE SET upto = excluded.upto;

-- name: to_index
SELECT h.id & 0xffffffff, b.body, h.kind
FROM headers AS h LEFT JOIN bodies AS b USING (body_no)
WHERE h.id >= ? AND h.id < ? ORDER BY h.id LIMIT ?;

-- name: text_add
INSERT INTO texts VALUES (?, ?);

-- name: tokens_add
INSERT INTO tokens (rowid, parts, wholes) VALUES (?, ?, ?);

-- name: index_drop
DELETE FROM texts;
DELETE FROM indexed;
INSERT INTO tokens (tokens) VALUES ('delete-all');

-- name: search
SELECT t.rowid, d.dialog_id, s.session_id, h.kind, h.role, x.deflated, t.rank
FROM tokens AS t
  JOIN headers AS h ON h.id = t.rowid
  JOIN dialogs AS d ON d.dialog_no = t.rowid >> 32
  JOIN sessions AS s USING (session_no)
  JOIN texts AS x ON x.id = t.rowid
WHERE t.tokens MATCH :match AND s.trashed_at IS NULL
ORDER BY t.rank;

-- name: search_places
-- The dialogs of a session that is not in the trash.
SELECT d.dialog_no, d.dialog_id, s.session_id FROM sessions AS s JOIN dialogs AS d USING (session_no)
WHERE s.session_no = ? AND s.trashed_at IS NULL;

-- name: search_within
-- A range of the index, unranked: the rank would count the words in all sessions.
SELECT t.rowid, h.kind, h.role, x.deflated
FROM tokens AS t JOIN headers AS h ON h.id = t.rowid JOIN texts AS x ON x.id = t.rowid
WHERE t.tokens MATCH ? AND t.rowid >= ? AND t.rowid < ?;
