-- name: dialog_add
INSERT INTO dialogs (
  dialog_id, session_no, place, owner, parent_id, ranges, split_point, last_n, first_k, inherited, created_at, relation, metadata
) VALUES (
  %(dialog_id)s, %(session_no)s, %(place)s, %(owner)s, %(parent_id)s, %(ranges)s, %(split_point)s, %(last_n)s, %(first_k)s, %(inherited)s,
  %(created_at)s, %(relation)s, %(metadata)s
);

-- name: dialog_length
-- How many own entries a dialog of a session holds; no row when the session has no such dialog.
SELECT length FROM dialog_ends WHERE dialog_id = %s AND session_no = %s;

-- name: dialog_next_place
SELECT coalesce(max(place), -1) + 1 FROM dialogs WHERE session_no = %s;

-- name: dialog_taken
SELECT 1 FROM dialogs
WHERE dialog_id >= %(short)s AND dialog_id < %(short)s || 'g' AND (dialog_id = %(dialog_id)s OR session_no = %(session_no)s)
LIMIT 1;

-- name: node_get
SELECT
  d.dialog_id, s.session_id, d.owner, d.parent_id, d.ranges, d.place, d.split_point, d.last_n, d.first_k, d.inherited, d.created_at,
  d.relation, d.metadata
FROM dialogs AS d JOIN sessions AS s USING (session_no)
WHERE d.dialog_id = %s;

-- name: nodes_of
SELECT
  d.dialog_id, s.session_id, d.owner, d.parent_id, d.ranges, d.place, d.split_point, d.last_n, d.first_k, d.inherited, d.created_at,
  d.relation, d.metadata
FROM dialogs AS d JOIN sessions AS s USING (session_no)
WHERE d.session_no = %s
ORDER BY d.place;

-- name: dialogs_beginning
SELECT d.dialog_id
FROM dialogs AS d JOIN sessions AS s USING (session_no)
WHERE d.dialog_id >= %(prefix)s AND d.dialog_id < %(prefix)s || 'g' AND (%(session_id)s::text IS NULL OR s.session_id = %(session_id)s)
ORDER BY d.dialog_id
LIMIT %(limit)s;
