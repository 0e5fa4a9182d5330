-- name: entries_loose
-- Entries of no dialog.
SELECT e.dialog_no, e.seq FROM entries AS e
WHERE NOT EXISTS (SELECT 1 FROM dialogs AS d WHERE d.dialog_no = e.dialog_no)
ORDER BY e.dialog_no, e.seq LIMIT 1000;

-- name: migrations_done
SELECT version, name, sha256 FROM migrations ORDER BY version;

-- name: watermarks
-- Of each dialog that is indexed: its number, its id, NULL when there is no such dialog, how many entries are indexed, and how many it holds.
SELECT i.dialog_no, e.dialog_id, i.upto, coalesce(e.length, 0)
FROM indexed AS i LEFT JOIN dialog_ends AS e USING (dialog_no)
WHERE i.dialog_no > %s ORDER BY i.dialog_no LIMIT %s;

-- name: texts_loose
-- Texts and tokens of entries that are not said to be indexed.
SELECT x.dialog_no, x.seq FROM (SELECT dialog_no, seq FROM texts UNION SELECT dialog_no, seq FROM tokens) AS x
  LEFT JOIN indexed AS i USING (dialog_no)
WHERE i.upto IS NULL OR x.seq >= i.upto ORDER BY x.dialog_no, x.seq LIMIT 1000;

-- name: texts_judged
-- A page of what judges the text of an entry: its body, the text that is kept, its kind, and whether it has tokens.
SELECT
  h.seq, h.body, x.deflated, h.kind,
  EXISTS (SELECT 1 FROM tokens AS t WHERE t.dialog_no = h.dialog_no AND t.seq = h.seq)
FROM entries AS h LEFT JOIN texts AS x USING (dialog_no, seq)
WHERE h.dialog_no = %(dialog_no)s AND h.seq >= %(start)s AND h.seq < %(stop)s ORDER BY h.seq LIMIT 64;

-- name: activities
-- A page of sessions: number, id, rough time, and when each was last active.
SELECT
  s.session_no, s.session_id, (SELECT a.at FROM activity AS a WHERE a.session_no = s.session_no),
  (SELECT v.updated_at FROM session_activity AS v WHERE v.session_no = s.session_no)
FROM sessions AS s WHERE s.session_no > %s ORDER BY s.session_no LIMIT %s;

-- name: activities_loose
-- Rough times of no session.
SELECT a.session_no FROM activity AS a
WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_no = a.session_no) ORDER BY a.session_no LIMIT 1000;
