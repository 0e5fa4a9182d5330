-- name: newest
-- The newest header of a dialog; NULLs when it has none.
SELECT {header}
FROM {s}dialogs AS d LEFT JOIN {s}{headers} AS e ON e.session_no = d.session_no AND e.dialog_no = d.dialog_no
  AND e.seq = (SELECT max(f.seq) FROM {s}{headers} AS f WHERE f.session_no = d.session_no AND f.dialog_no = d.dialog_no)
WHERE d.dialog_id = :dialog_id;

-- name: is_newest
-- A row, if an entry is the newest of a dialog and as it was.
SELECT 1 FROM (
  SELECT e.seq, e.check_sum, e.digest FROM {s}{headers} AS e WHERE {own_e} ORDER BY e.seq DESC LIMIT 1
) AS e
WHERE e.seq = :seq AND e.check_sum = :check_sum AND e.digest = :digest;

-- name: is_empty
-- A row, if a dialog is there and has no entry.
SELECT 1 FROM {s}dialogs AS d
WHERE d.dialog_id = :dialog_id AND NOT EXISTS (SELECT 1 FROM {s}{headers} AS e WHERE {own_e});

-- name: header_get
SELECT {header} FROM {s}{headers} AS e WHERE {own_e} AND e.seq = :seq;

-- name: headers_up
SELECT {header} FROM {s}{headers} AS e
WHERE {own_e} AND e.seq >= :start AND e.seq < :stop
ORDER BY e.seq LIMIT :rows;

-- name: headers_down
SELECT {header} FROM {s}{headers} AS e
WHERE {own_e} AND e.seq >= :start AND e.seq < :stop
ORDER BY e.seq DESC LIMIT :rows;

-- name: latest_of_kind
-- The last condition is that of the index, which SQLite would not use by itself: the primary key is in the order that is asked for, too.
SELECT {header} FROM {s}{headers} AS e{by_kind}
WHERE {own_e} AND e.kind = :kind AND e.seq >= :start AND e.seq < :stop
  AND e.kind NOT IN ('message', 'call_started')
ORDER BY e.seq DESC LIMIT :rows;

-- name: body_get
SELECT {body}, e.digest FROM {entries} WHERE {own_e} AND e.seq = :seq;

-- name: bodies_up
-- A page: so many rows, and no more bytes than given before the last row's. A body that was lost is NULL.
SELECT e.seq, {body}, e.kind, e.digest FROM {entries}
WHERE {own_e} AND e.seq >= :start AND e.seq < :stop
  AND e.total - e.size <= :bytes + (
    SELECT f.total - f.size FROM {s}{headers} AS f
    WHERE {own_f} AND f.seq >= :start ORDER BY f.seq LIMIT 1
  )
ORDER BY e.seq LIMIT :rows;

-- name: entry_reference_add
INSERT INTO {s}payload_refs SELECT session_no, dialog_no, :seq, :digest FROM {s}dialogs WHERE dialog_id = :dialog_id
ON CONFLICT DO NOTHING;

-- name: tail
-- The newest entries, newest first: so many, with so many bytes; the newest in any case.
SELECT {header}, {body} FROM {entries}
WHERE {own_e} AND e.seq >= :start
  AND e.seq > (SELECT max(f.seq) FROM {s}{headers} AS f WHERE {own_f}) - :rows
  AND (
    e.total - e.size >= (SELECT f.total FROM {s}{headers} AS f WHERE {own_f} ORDER BY f.seq DESC LIMIT 1) - :bytes
    OR e.seq = (SELECT max(f.seq) FROM {s}{headers} AS f WHERE {own_f})
  )
ORDER BY e.seq DESC LIMIT :rows;

-- name: tail_of_root
-- The root of a session, and its newest entries as for `tail`.
SELECT (SELECT root FROM {s}sessions WHERE session_id = :session_id), {header}, {body} FROM {entries}
WHERE {root_e} AND e.seq > (SELECT max(f.seq) FROM {s}{headers} AS f WHERE {root_f}) - :rows
  AND (
    e.total - e.size >= (SELECT f.total FROM {s}{headers} AS f WHERE {root_f} ORDER BY f.seq DESC LIMIT 1) - :bytes
    OR e.seq = (SELECT max(f.seq) FROM {s}{headers} AS f WHERE {root_f})
  )
ORDER BY e.seq DESC LIMIT :rows;

-- name: reference_add
INSERT INTO {s}payload_refs VALUES (:session_no, :dialog_no, :seq, :digest) ON CONFLICT DO NOTHING;

-- name: references_remove
DELETE FROM {s}payload_refs WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: blob_touch
INSERT INTO {s}blobs VALUES (:digest, :size, :at) ON CONFLICT (digest) DO UPDATE SET put_at = excluded.put_at;

-- name: blob_add
INSERT INTO {s}blob_bytes VALUES (:digest, :data) ON CONFLICT (digest) DO NOTHING;

-- name: blob_get
SELECT data FROM {s}blob_bytes WHERE digest = :digest;

-- name: blob_has
SELECT 1 FROM {s}blob_bytes WHERE digest = :digest;

-- name: blob_ids
SELECT DISTINCT r.digest FROM {s}payload_refs AS r JOIN {s}blob_bytes AS b ON b.digest = r.digest WHERE r.session_no = :session_no
ORDER BY r.digest;

-- name: lease_read
SELECT holder, token, until FROM {s}leases WHERE name = :name;

-- name: lease_get
-- A lease, which nobody else changes until the end of the transaction.
INSERT INTO {s}leases VALUES (:name, '', 0, 0) ON CONFLICT (name) DO UPDATE SET token = leases.token
RETURNING holder, token, until;

-- name: lease_set
UPDATE {s}leases SET holder = :holder, token = :token, until = :until WHERE name = :name;
