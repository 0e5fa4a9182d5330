-- name: session_add
INSERT INTO sessions (session_id, name, subject, workdir, created_at, trashed_at, root, metadata)
VALUES (:session_id, :name, :subject, :workdir, :created_at, :trashed_at, :root, :metadata)
ON CONFLICT (session_id) DO NOTHING;

-- name: session_no
SELECT session_no FROM sessions WHERE session_id = ?;

-- name: session_get
-- When it was last active is computed here as the view session_activity does, which costs a small query several times as much.
SELECT
  session_id, name, subject, workdir, created_at,
  max(created_at, coalesce((
    SELECT max(max(d.created_at, coalesce((
      SELECT at FROM headers WHERE id BETWEEN d.dialog_no << 32 AND d.dialog_no << 32 | 0xffffffff ORDER BY id DESC LIMIT 1
    ), d.created_at)))
    FROM dialogs AS d WHERE d.session_no = s.session_no
  ), created_at)) AS updated_at,
  trashed_at, root, metadata
FROM sessions AS s
WHERE session_id = ?;

-- name: session_set
UPDATE sessions
SET name = :name, subject = :subject, workdir = :workdir, trashed_at = :trashed_at, root = :root, metadata = :metadata
WHERE session_id = :session_id;

-- name: source_put
INSERT INTO sources (identity, session_no, format, path, digest, raw, record_index, imported_at)
VALUES (:identity, :session_no, :format, :path, :digest, :raw, :index, :imported_at)
ON CONFLICT (identity) DO UPDATE SET
  session_no = excluded.session_no, format = excluded.format, path = excluded.path, digest = excluded.digest,
  raw = excluded.raw, record_index = excluded.record_index, imported_at = excluded.imported_at;

-- name: source_get
SELECT f.identity, s.session_id, f.format, f.path, f.digest, f.raw, f.record_index, f.imported_at
FROM sources AS f JOIN sessions AS s USING (session_no)
WHERE f.identity = ?;

-- name: sources_of
SELECT f.identity, s.session_id, f.format, f.path, f.digest, f.raw, f.record_index, f.imported_at
FROM sources AS f JOIN sessions AS s USING (session_no)
WHERE s.session_no = ?
ORDER BY f.identity;
