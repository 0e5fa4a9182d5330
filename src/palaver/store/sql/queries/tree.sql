-- name: dialog_add
INSERT INTO {s}dialogs (
  dialog_id, session_no, place, owner, parent_id, shared, ranges, split_point, last_n, first_k, inherited, created_at, relation, metadata,
  check_sum
) VALUES (
  :dialog_id, :session_no, :place, :owner, :parent_id, :shared, :ranges, :split_point, :last_n, :first_k, :inherited, :created_at,
  :relation, :metadata, :check_sum
);

-- name: dialog_next_place
SELECT coalesce(max(place), -1) + 1 FROM {s}dialogs WHERE session_no = :session_no;

-- name: dialog_taken
-- The plus sign leaves the range of ids as the only way in: the other term would tempt SQLite into reading the whole session.
SELECT 1 FROM {s}dialogs
WHERE dialog_id >= :short AND dialog_id < :beyond AND (dialog_id = :dialog_id OR +session_no = :session_no)
LIMIT 1;

-- name: node_get
SELECT
  d.dialog_id, s.session_id, d.owner, d.parent_id, d.ranges, d.place, d.split_point, d.last_n, d.first_k, d.inherited,
  d.created_at, d.relation, d.metadata, d.shared
FROM {s}dialogs AS d JOIN {s}sessions AS s USING (session_no)
WHERE d.dialog_id = :dialog_id;

-- name: root_get
SELECT
  d.dialog_id, s.session_id, d.owner, d.parent_id, d.ranges, d.place, d.split_point, d.last_n, d.first_k, d.inherited,
  d.created_at, d.relation, d.metadata, d.shared
FROM {s}sessions AS s JOIN {s}dialogs AS d ON d.dialog_id = s.root
WHERE s.session_id = :session_id;

-- name: nodes_of
SELECT
  d.dialog_id, s.session_id, d.owner, d.parent_id, d.ranges, d.place, d.split_point, d.last_n, d.first_k, d.inherited,
  d.created_at, d.relation, d.metadata, d.shared
FROM {s}dialogs AS d JOIN {s}sessions AS s USING (session_no)
WHERE s.session_id = :session_id AND d.place > :after
ORDER BY d.place;

-- name: dialogs_beginning
SELECT d.dialog_id
FROM {s}dialogs AS d JOIN {s}sessions AS s USING (session_no)
WHERE d.dialog_id >= :prefix AND d.dialog_id < :beyond AND (CAST(:session_id AS text) IS NULL OR s.session_id = :session_id)
ORDER BY d.dialog_id
LIMIT :limit;

-- name: dialog_end
-- The numbers of a dialog, and how many own entries it holds.
SELECT d.session_no, d.dialog_no, coalesce((
  SELECT e.seq + 1 FROM {s}{headers} AS e WHERE e.session_no = d.session_no AND e.dialog_no = d.dialog_no ORDER BY e.seq DESC LIMIT 1
), 0)
FROM {s}dialogs AS d WHERE d.dialog_id = :dialog_id;
