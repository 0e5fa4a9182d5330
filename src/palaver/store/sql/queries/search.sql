-- name: lag
SELECT coalesce(sum(coalesce((
  SELECT e.seq + 1 FROM {s}{headers} AS e WHERE e.session_no = d.session_no AND e.dialog_no = d.dialog_no ORDER BY e.seq DESC LIMIT 1
), 0) - coalesce(i.upto, 0)), 0)
FROM {s}dialogs AS d LEFT JOIN {s}indexed AS i ON i.session_no = d.session_no AND i.dialog_no = d.dialog_no;

-- name: behind
-- The dialogs, with how many of their entries are indexed and how many they hold.
SELECT d.dialog_id, d.session_no, d.dialog_no, coalesce(i.upto, 0), coalesce((
  SELECT e.seq + 1 FROM {s}{headers} AS e WHERE e.session_no = d.session_no AND e.dialog_no = d.dialog_no ORDER BY e.seq DESC LIMIT 1
), 0)
FROM {s}dialogs AS d LEFT JOIN {s}indexed AS i ON i.session_no = d.session_no AND i.dialog_no = d.dialog_no
WHERE CAST(:session_no AS bigint) IS NULL OR d.session_no = :session_no
ORDER BY d.dialog_no;

-- name: dialog_lock_index
-- The dialog, whose entries nobody erases until the end of the transaction.
SELECT 1 FROM {s}dialogs WHERE dialog_no = :dialog_no {for_index};

-- name: watermark_lock
-- How much of a dialog is indexed, which nobody else changes until the end of the transaction.
INSERT INTO {s}indexed VALUES (:session_no, :dialog_no, 0)
ON CONFLICT (session_no, dialog_no) DO UPDATE SET upto = indexed.upto
RETURNING upto;

-- name: watermark_set
UPDATE {s}indexed SET upto = :upto WHERE session_no = :session_no AND dialog_no = :dialog_no;
