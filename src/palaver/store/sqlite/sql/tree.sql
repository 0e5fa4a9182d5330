-- name: dialog_add
INSERT INTO dialogs (
  dialog_id, session_no, place, owner, parent_id, ranges, split_point, last_n, first_k, inherited, created_at, relation, metadata
) VALUES (
  :dialog_id, :session_no, :place, :owner, :parent_id, :ranges, :split_point, :last_n, :first_k, :inherited, :created_at, :relation, :metadata
);

-- name: dialog_no
SELECT dialog_no FROM dialogs WHERE dialog_id = ?;

-- name: dialog_length
-- How many own entries a dialog of a session holds; no row when the session has no such dialog.
SELECT coalesce((newest & 0xffffffff) + 1, 0) FROM dialog_ends WHERE dialog_id = ? AND session_no = ?;

-- name: dialog_next_place
SELECT coalesce(max(place), -1) + 1 FROM dialogs WHERE session_no = ?;

-- name: dialog_taken
-- The plus signs leave the range of ids as the only way in: the other two terms would tempt SQLite into reading the whole session.
SELECT 1 FROM dialogs
WHERE dialog_id >= :short AND dialog_id < :short || 'g' AND (+dialog_id = :dialog_id OR +session_no = :session_no)
LIMIT 1;

-- name: node_get
-- A subquery costs a single row half of what a join does.
SELECT
  d.dialog_id, (SELECT session_id FROM sessions AS s WHERE s.session_no = d.session_no), d.owner, d.parent_id, d.ranges, d.place, d.split_point, d.last_n, d.first_k, d.inherited, d.created_at,
  d.relation, d.metadata
FROM dialogs AS d
WHERE d.dialog_id = ?;

-- name: nodes_of
SELECT
  d.dialog_id, s.session_id, d.owner, d.parent_id, d.ranges, d.place, d.split_point, d.last_n, d.first_k, d.inherited, d.created_at,
  d.relation, d.metadata
FROM dialogs AS d JOIN sessions AS s USING (session_no)
WHERE d.session_no = ?
ORDER BY d.place;

-- name: dialogs_beginning
SELECT d.dialog_id
FROM dialogs AS d JOIN sessions AS s USING (session_no)
WHERE d.dialog_id >= :prefix AND d.dialog_id < :prefix || 'g' AND (:session_id IS NULL OR s.session_id = :session_id)
ORDER BY d.dialog_id
LIMIT :limit;
