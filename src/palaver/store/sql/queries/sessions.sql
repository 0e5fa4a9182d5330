-- name: session_add
INSERT INTO {s}sessions (session_id, tenant, name, subject, workdir, created_at, trashed_at, root, metadata)
VALUES (:session_id, :tenant, :name, :subject, :workdir, :created_at, :trashed_at, :root, :metadata)
ON CONFLICT (session_id) DO NOTHING
RETURNING session_no;

-- name: activity_add
INSERT INTO {s}activity VALUES (:session_no, :at);

-- name: touch
-- When a session was last active never goes back.
UPDATE {s}activity SET updated_at = :at WHERE session_no = :session_no AND updated_at < :at;

-- name: entry_touch
UPDATE {s}activity SET updated_at = :at
WHERE session_no = (SELECT session_no FROM {s}dialogs WHERE dialog_id = :dialog_id) AND updated_at < :at;

-- name: session_no
SELECT session_no FROM {s}sessions WHERE session_id = :session_id;

-- name: session_lock
-- The number of a session to which nobody else adds dialogs, and which nobody else changes, until the end of the transaction.
SELECT session_no FROM {s}sessions WHERE session_id = :session_id {for_update};

-- name: session_get
SELECT s.session_id, s.tenant, s.name, s.subject, s.workdir, s.created_at, a.updated_at, s.trashed_at, s.root, s.metadata
FROM {s}sessions AS s JOIN {s}activity AS a USING (session_no)
WHERE s.session_id = :session_id;

-- name: sessions_listed
SELECT s.session_id, s.tenant, s.name, s.subject, s.workdir, s.created_at, a.updated_at, s.trashed_at, s.root, s.metadata
FROM {s}activity AS a JOIN {s}sessions AS s USING (session_no)
WHERE a.updated_at <= :at AND (a.updated_at < :at OR s.session_id < :session_id) /*where*/
ORDER BY a.updated_at DESC, s.session_id DESC
LIMIT :limit;

-- name: sessions_beginning
SELECT session_id FROM {s}sessions
WHERE session_id >= :prefix AND session_id < :beyond AND trashed_at IS NULL
ORDER BY session_id LIMIT :limit;

-- name: session_set
UPDATE {s}sessions
SET name = :name, subject = :subject, workdir = :workdir, trashed_at = :trashed_at, root = :root, metadata = :metadata
WHERE session_id = :session_id;

-- name: source_put
INSERT INTO {s}sources (identity, session_no, format, path, digest, raw, record_index, imported_at)
VALUES (:identity, :session_no, :format, :path, :digest, :raw, :index, :imported_at)
ON CONFLICT (identity) DO UPDATE SET
  session_no = excluded.session_no, format = excluded.format, path = excluded.path, digest = excluded.digest,
  raw = excluded.raw, record_index = excluded.record_index, imported_at = excluded.imported_at
RETURNING source_no;

-- name: source_get
SELECT f.identity, s.session_id, f.format, f.path, f.digest, f.raw, f.record_index, f.imported_at
FROM {s}sources AS f JOIN {s}sessions AS s USING (session_no)
WHERE f.identity = :identity;

-- name: sources_of
SELECT f.identity, s.session_id, f.format, f.path, f.digest, f.raw, f.record_index, f.imported_at
FROM {s}sources AS f JOIN {s}sessions AS s USING (session_no)
WHERE f.session_no = :session_no
ORDER BY f.identity;
