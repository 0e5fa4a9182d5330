-- name: newest
-- As in palaver.store.sql, in the form that SQLite answers with one search of each table.
SELECT {header}
FROM dialogs AS d LEFT JOIN headers AS e ON e.session_no = d.session_no AND e.dialog_no = d.dialog_no
WHERE d.dialog_id = :dialog_id
ORDER BY e.seq DESC LIMIT 1;

-- name: tail
-- As in palaver.store.sql for one row, the newest, which is within any bound: all that a file is asked for at once.
SELECT {header}, {body} FROM {entries} WHERE {own_e} AND e.seq >= :start ORDER BY e.seq DESC LIMIT :rows;

-- name: tail_of_root
SELECT (SELECT root FROM sessions WHERE session_id = :session_id), {header}, {body} FROM {entries}
WHERE {root_e} ORDER BY e.seq DESC LIMIT :rows;

-- name: entry_add
INSERT INTO bodies (body) VALUES (:body);
INSERT INTO headers (session_no, dialog_no, {names}, check_sum, body_no)
SELECT session_no, dialog_no, {values}, :check_sum, last_insert_rowid() FROM dialogs WHERE dialog_id = :dialog_id;

-- name: header_set
UPDATE headers SET kind = :kind, size = :size, total = :total, digest = :digest, check_sum = :check_sum
WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: body_set
-- A body that was lost is put back.
INSERT INTO bodies (body_no, body)
SELECT body_no, :body FROM headers WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq
ON CONFLICT (body_no) DO UPDATE SET body = excluded.body;

-- name: text_add
INSERT INTO texts (session_no, dialog_no, seq, text_no, deflated)
VALUES (:session_no, :dialog_no, :seq, (SELECT coalesce(max(text_no), 0) + 1 FROM texts), :deflated);
INSERT INTO tokens (rowid, said, rest, session)
SELECT text_no, :said, :rest, :session_no FROM texts
WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: text_remove
DELETE FROM tokens WHERE rowid IN (
  SELECT text_no FROM texts WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq
);
DELETE FROM texts WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: entries_remove
DELETE FROM tokens WHERE rowid IN (SELECT text_no FROM texts WHERE session_no = :session_no AND dialog_no = :dialog_no);
DELETE FROM texts WHERE session_no = :session_no AND dialog_no = :dialog_no;
DELETE FROM bodies WHERE body_no IN (SELECT body_no FROM headers WHERE session_no = :session_no AND dialog_no = :dialog_no);
DELETE FROM headers WHERE session_no = :session_no AND dialog_no = :dialog_no;

-- name: tokens_optimize
-- What was deleted is only marked in the segments of the index until they are merged.
INSERT INTO tokens (tokens) VALUES ('optimize');

-- name: tokens_opened
-- The check of FTS5 uses what this connection last knew of the index; opening a cursor reads that anew.
SELECT 1 FROM tokens WHERE rowid = 0;

-- name: row_counts
SELECT (SELECT count(*) FROM headers), (SELECT count(*) FROM bodies);

-- name: tokens_loose
-- Texts without tokens, and tokens without a text.
SELECT x.dialog_no, x.seq FROM texts AS x WHERE NOT EXISTS (SELECT 1 FROM tokens AS t WHERE t.rowid = x.text_no) LIMIT 1000;

-- name: clock
SELECT unixepoch('now', 'subsec');

-- name: matching
SELECT t.rowid FROM tokens AS t WHERE t.tokens MATCH :match AND t.rowid < :before ORDER BY t.rowid DESC LIMIT :rows;

-- name: hits
SELECT x.text_no, d.dialog_id, x.seq, s.session_id, e.kind, e.role, e.at, s.trashed_at, x.deflated
FROM texts AS x
  JOIN sessions AS s ON s.session_no = x.session_no
  JOIN dialogs AS d ON d.dialog_no = x.dialog_no
  JOIN headers AS e ON e.session_no = x.session_no AND e.dialog_no = x.dialog_no AND e.seq = x.seq
WHERE /*where*/
ORDER BY x.text_no DESC;
