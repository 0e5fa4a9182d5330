-- name: activity_of_dialog
SELECT session_no, at FROM activity WHERE session_no = (SELECT session_no FROM dialogs WHERE dialog_no = %s);

-- name: activity_of_session
SELECT session_no, at FROM activity WHERE session_no = %s;

-- name: activity_exact
SELECT updated_at FROM session_activity WHERE session_no = %s;

-- name: activity_set
-- Another writer who is at it writes nearly the same: nobody waits for him.
UPDATE activity SET at = %s
WHERE session_no = (SELECT session_no FROM activity WHERE session_no = %s FOR UPDATE SKIP LOCKED);

-- name: session_list
-- So many sessions as are wanted are no less active than the last of `surely`; whatever could be more active stands in doubt.
WITH surely AS MATERIALIZED (
  SELECT a.at FROM activity AS a JOIN sessions AS s USING (session_no)
  WHERE a.at < %(after_at)s - %(off)s::float8 AND s.trashed_at IS NULL
  ORDER BY a.at DESC LIMIT %(limit)s
), bounds AS MATERIALIZED (
  SELECT (CASE WHEN count(*) < %(limit)s THEN '-infinity' ELSE min(at) END) - %(doubt)s::float8 AS lowest FROM surely
)
SELECT s.session_id
FROM bounds AS b JOIN activity AS a ON a.at >= b.lowest AND a.at <= %(after_at)s + %(off)s::float8
  JOIN sessions AS s USING (session_no) JOIN session_activity AS v USING (session_no)
WHERE s.trashed_at IS NULL AND (v.updated_at, s.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT %(limit)s;

-- name: session_list_trashed
SELECT s.session_id
FROM sessions AS s JOIN session_activity AS v USING (session_no)
WHERE s.trashed_at IS NOT NULL AND (%(name)s::text IS NULL OR s.name = %(name)s)
  AND (%(subject)s::text IS NULL OR s.subject = %(subject)s)
  AND (v.updated_at, s.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT %(limit)s;

-- name: session_list_named
SELECT s.session_id
FROM sessions AS s JOIN session_activity AS v USING (session_no)
WHERE s.name = %(name)s AND (%(subject)s::text IS NULL OR s.subject = %(subject)s) AND s.trashed_at IS NULL
  AND (v.updated_at, s.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT %(limit)s;

-- name: session_list_about
SELECT s.session_id
FROM sessions AS s JOIN session_activity AS v USING (session_no)
WHERE s.subject = %(subject)s AND s.trashed_at IS NULL
  AND (v.updated_at, s.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT %(limit)s;

-- name: sessions_beginning
SELECT session_id FROM sessions
WHERE session_id >= %(prefix)s AND session_id < %(prefix)s || 'g' AND trashed_at IS NULL
ORDER BY session_id LIMIT %(limit)s;
