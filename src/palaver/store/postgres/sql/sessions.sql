-- name: session_add
WITH made AS (
  INSERT INTO sessions (session_id, name, subject, workdir, created_at, trashed_at, root, metadata)
  VALUES (%(session_id)s, %(name)s, %(subject)s, %(workdir)s, %(created_at)s, %(trashed_at)s, %(root)s, %(metadata)s)
  ON CONFLICT (session_id) DO NOTHING
  RETURNING session_no, created_at
)
INSERT INTO activity SELECT session_no, created_at FROM made;

-- name: session_no
SELECT session_no FROM sessions WHERE session_id = %s;

-- name: session_lock
-- The number of a session, which nobody else changes, and to which nobody else adds dialogs, until the end of the transaction.
SELECT session_no FROM sessions WHERE session_id = %s FOR NO KEY UPDATE;

-- name: sessions_get
SELECT s.session_id, s.name, s.subject, s.workdir, s.created_at, a.updated_at, s.trashed_at, s.root, s.metadata
FROM unnest(%s::text[]) WITH ORDINALITY AS wanted (session_id, place)
  JOIN sessions AS s USING (session_id)
  JOIN session_activity AS a USING (session_no)
ORDER BY wanted.place;

-- name: session_set
UPDATE sessions
SET name = %(name)s, subject = %(subject)s, workdir = %(workdir)s, trashed_at = %(trashed_at)s, root = %(root)s, metadata = %(metadata)s
WHERE session_id = %(session_id)s;

-- name: source_put
INSERT INTO sources (identity, session_no, format, path, digest, raw, record_index, imported_at)
VALUES (%(identity)s, %(session_no)s, %(format)s, %(path)s, %(digest)s, %(raw)s, %(index)s, %(imported_at)s)
ON CONFLICT (identity) DO UPDATE SET
  session_no = excluded.session_no, format = excluded.format, path = excluded.path, digest = excluded.digest,
  raw = excluded.raw, record_index = excluded.record_index, imported_at = excluded.imported_at;

-- name: source_get
SELECT f.identity, s.session_id, f.format, f.path, f.digest, f.raw, f.record_index, f.imported_at
FROM sources AS f JOIN sessions AS s USING (session_no)
WHERE f.identity = %s;

-- name: sources_of
SELECT f.identity, s.session_id, f.format, f.path, f.digest, f.raw, f.record_index, f.imported_at
FROM sources AS f JOIN sessions AS s USING (session_no)
WHERE s.session_no = %s;
