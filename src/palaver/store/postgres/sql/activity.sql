-- name: activity_of_dialog
-- Of a dialog's session: its number, its rough time, and the time before which it cannot have been last active while it has this dialog.
SELECT a.session_no, a.at, greatest(s.created_at, d.created_at)
FROM dialogs AS d JOIN sessions AS s USING (session_no) JOIN activity AS a USING (session_no)
WHERE d.dialog_no = %s;

-- name: activity_raised
-- What follows the statement that writes an entry, `placed`, when the entry is no older than the one before: then the rough time of its session
-- can only rise. One row when the entry was written, with the rough time that was there, what it was raised to (NULL when it was not), and
-- the floor. Another writer who is raising it writes nearly the same: nobody waits for him.
, known AS (
  SELECT a.session_no, a.at, greatest(s.created_at, d.created_at) AS floor
  FROM placed, dialogs AS d JOIN sessions AS s USING (session_no) JOIN activity AS a USING (session_no)
  WHERE d.dialog_no = %(dialog_no)s
), raised AS (
  UPDATE activity AS a SET at = %(at)s
  WHERE a.session_no = (
    SELECT l.session_no FROM activity AS l JOIN known AS k USING (session_no) WHERE %(at)s > l.at + %(slack)s FOR UPDATE OF l SKIP LOCKED
  )
  RETURNING a.at
)
SELECT k.at, r.at, k.floor FROM placed LEFT JOIN known AS k ON true LEFT JOIN raised AS r ON true;

-- name: activity_of_session
SELECT session_no, at FROM activity WHERE session_no = %s;

-- name: activity_exact
SELECT updated_at FROM session_activity WHERE session_no = %s;

-- name: activity_set
-- Another writer who is at it writes nearly the same: nobody waits for him.
UPDATE activity SET at = %s
WHERE session_no = (SELECT session_no FROM activity WHERE session_no = %s FOR UPDATE SKIP LOCKED);

-- name: session_list
-- So many sessions as are wanted are no less active than the last of `surely`; whatever could be more active stands in doubt. How many that are
-- the planner cannot guess, and it guesses a tenth of all: so what is derived of each is a subquery that it may not take apart (OFFSET 0).
WITH surely AS MATERIALIZED (
  SELECT a.at FROM activity AS a
  WHERE a.at < %(after_at)s - %(off)s::float8 AND (SELECT s.trashed_at IS NULL FROM sessions AS s WHERE s.session_no = a.session_no)
  ORDER BY a.at DESC LIMIT %(limit)s
), doubtful AS MATERIALIZED (
  SELECT a.session_no FROM activity AS a
  WHERE a.at >= (SELECT (CASE WHEN count(*) < %(limit)s THEN '-infinity' ELSE min(at) END) - %(doubt)s::float8 FROM surely)
    AND a.at <= %(after_at)s + %(off)s::float8
)
SELECT f.session_id
FROM doubtful AS d CROSS JOIN LATERAL (
  SELECT s.session_id, v.updated_at FROM sessions AS s JOIN session_activity AS v USING (session_no)
  WHERE s.session_no = d.session_no AND s.trashed_at IS NULL OFFSET 0
) AS f
WHERE (f.updated_at, f.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY f.updated_at DESC, f.session_id DESC
LIMIT %(limit)s;

-- name: session_list_trashed
SELECT s.session_id
FROM sessions AS s CROSS JOIN LATERAL (
  SELECT v.updated_at FROM session_activity AS v WHERE v.session_no = s.session_no OFFSET 0
) AS v
WHERE s.trashed_at IS NOT NULL AND (%(name)s::text IS NULL OR s.name = %(name)s)
  AND (%(subject)s::text IS NULL OR s.subject = %(subject)s)
  AND (v.updated_at, s.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT %(limit)s;

-- name: session_list_named
SELECT s.session_id
FROM sessions AS s CROSS JOIN LATERAL (
  SELECT v.updated_at FROM session_activity AS v WHERE v.session_no = s.session_no OFFSET 0
) AS v
WHERE s.name = %(name)s AND (%(subject)s::text IS NULL OR s.subject = %(subject)s) AND s.trashed_at IS NULL
  AND (v.updated_at, s.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT %(limit)s;

-- name: session_list_about
SELECT s.session_id
FROM sessions AS s CROSS JOIN LATERAL (
  SELECT v.updated_at FROM session_activity AS v WHERE v.session_no = s.session_no OFFSET 0
) AS v
WHERE s.subject = %(subject)s AND s.trashed_at IS NULL
  AND (v.updated_at, s.session_id) < (%(after_at)s, %(after_id)s)
ORDER BY v.updated_at DESC, s.session_id DESC
LIMIT %(limit)s;

-- name: sessions_beginning
SELECT session_id FROM sessions
WHERE session_id >= %(prefix)s AND session_id < %(prefix)s || 'g' AND trashed_at IS NULL
ORDER BY session_id LIMIT %(limit)s;
