-- name: activity_add
INSERT INTO activity SELECT session_no, created_at FROM sessions WHERE session_id = ?;

-- name: activity_of_dialog
SELECT session_no, at FROM activity WHERE session_no = (SELECT session_no FROM dialogs WHERE dialog_no = ?);

-- name: activity_of_session
SELECT session_no, at FROM activity WHERE session_no = ?;

-- name: activity_exact
SELECT updated_at FROM session_activity WHERE session_no = ?;

-- name: activity_set
UPDATE activity SET at = ? WHERE session_no = ?;

-- name: session_list
-- So many sessions as are wanted are no less active than the last of `surely`; whatever could be more active stands in doubt.
WITH surely AS MATERIALIZED (
  SELECT a.at FROM activity AS a JOIN sessions AS s USING (session_no)
  WHERE a.at < :after_at - :off AND s.trashed_at IS NULL
  ORDER BY a.at DESC LIMIT :limit
)
SELECT s.session_id
FROM activity AS a JOIN sessions AS s USING (session_no) JOIN session_activity AS v USING (session_no)
WHERE a.at >= (SELECT CASE WHEN count(*) < :limit THEN -9e999 ELSE min(at) END FROM surely) - :doubt
  AND a.at <= :after_at + :off
  AND s.trashed_at IS NULL
  AND (v.updated_at, s.session_id) < (:after_at, :after_id)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT :limit;

-- name: session_list_trashed
SELECT s.session_id
FROM sessions AS s JOIN session_activity AS v USING (session_no)
WHERE s.trashed_at IS NOT NULL AND (:name IS NULL OR s.name = :name) AND (:subject IS NULL OR s.subject = :subject)
  AND (v.updated_at, s.session_id) < (:after_at, :after_id)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT :limit;

-- name: session_list_named
SELECT s.session_id
FROM sessions AS s JOIN session_activity AS v USING (session_no)
WHERE s.name = :name AND (:subject IS NULL OR s.subject = :subject) AND s.trashed_at IS NULL
  AND (v.updated_at, s.session_id) < (:after_at, :after_id)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT :limit;

-- name: session_list_about
SELECT s.session_id
FROM sessions AS s JOIN session_activity AS v USING (session_no)
WHERE s.subject = :subject AND s.trashed_at IS NULL
  AND (v.updated_at, s.session_id) < (:after_at, :after_id)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT :limit;

-- name: sessions_beginning
SELECT session_id FROM sessions
WHERE session_id >= :prefix AND session_id < :prefix || 'g' AND trashed_at IS NULL
ORDER BY session_id LIMIT :limit;
