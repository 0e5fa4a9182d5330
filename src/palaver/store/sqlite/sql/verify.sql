-- name: headers_loose
-- Headers of no dialog.
SELECT id FROM headers WHERE id > ? AND id >> 32 NOT IN (SELECT dialog_no FROM dialogs) ORDER BY id LIMIT ?;

-- name: row_counts
-- How many headers there are, and how many bodies: each header has one of its own.
SELECT (SELECT count(*) FROM headers), (SELECT count(*) FROM bodies);

-- name: migrations_done
SELECT version, name, sha256 FROM migrations ORDER BY version;

-- name: watermarks
-- Of each dialog that is indexed: its number, its id, NULL when there is no such dialog, how many entries are indexed, and how many it holds.
SELECT i.dialog_no, e.dialog_id, i.upto, coalesce((e.newest & 0xffffffff) + 1, 0)
FROM indexed AS i LEFT JOIN dialog_ends AS e USING (dialog_no)
WHERE i.dialog_no > ? ORDER BY i.dialog_no LIMIT ?;

-- name: texts_loose
-- Texts of entries that are not said to be indexed.
SELECT x.id FROM texts AS x LEFT JOIN indexed AS i ON i.dialog_no = x.id >> 32
WHERE x.id > ? AND (i.upto IS NULL OR x.id & 0xffffffff >= i.upto) ORDER BY x.id LIMIT ?;

-- name: texts_judged
-- A page of what judges the text of an entry: its body, the text that is kept, its kind, and whether it has tokens.
SELECT h.id & 0xffffffff, b.body, x.deflated, h.kind, EXISTS (SELECT 1 FROM tokens AS t WHERE t.rowid = h.id)
FROM headers AS h LEFT JOIN bodies AS b USING (body_no) LEFT JOIN texts AS x ON x.id = h.id
WHERE h.id >= ? AND h.id < ? ORDER BY h.id LIMIT ?;

-- name: tokens_opened
SELECT 1 FROM tokens WHERE rowid = 0;

-- name: activities
-- A page of sessions: number, id, rough time, and when each was last active.
SELECT
  s.session_no, s.session_id, (SELECT a.at FROM activity AS a WHERE a.session_no = s.session_no),
  (SELECT v.updated_at FROM session_activity AS v WHERE v.session_no = s.session_no)
FROM sessions AS s WHERE s.session_no > ? ORDER BY s.session_no LIMIT ?;

-- name: activities_loose
-- Rough times of no session.
SELECT a.session_no FROM activity AS a
WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_no = a.session_no) ORDER BY a.session_no LIMIT 1000;
