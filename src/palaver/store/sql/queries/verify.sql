-- name: migrations_done
SELECT version, name, sha256 FROM {s}migrations ORDER BY version;

-- name: headers_loose
-- Headers of no dialog, and those with a number that no entry has.
SELECT e.dialog_no, e.seq FROM {s}{headers} AS e
WHERE e.seq < 0 OR NOT EXISTS (
  SELECT 1 FROM {s}dialogs AS d WHERE d.dialog_no = e.dialog_no AND d.session_no = e.session_no
)
LIMIT 1000;

-- name: activity_loose
-- Sessions without a time of their last activity, and the other way round.
SELECT s.session_no FROM {s}sessions AS s LEFT JOIN {s}activity AS a USING (session_no) WHERE a.session_no IS NULL
UNION ALL
SELECT a.session_no FROM {s}activity AS a LEFT JOIN {s}sessions AS s USING (session_no) WHERE s.session_no IS NULL
LIMIT 1000;

-- name: texts_loose
-- Texts of entries that are not indexed.
SELECT x.dialog_no, x.seq FROM {s}texts AS x
  LEFT JOIN {s}indexed AS i ON i.session_no = x.session_no AND i.dialog_no = x.dialog_no
WHERE i.upto IS NULL OR x.seq >= i.upto LIMIT 1000;

-- name: watermarks
-- Dialogs of which more is said to be indexed than they hold.
SELECT i.dialog_no, i.upto FROM {s}indexed AS i
WHERE i.upto > coalesce((
  SELECT e.seq + 1 FROM {s}{headers} AS e WHERE e.session_no = i.session_no AND e.dialog_no = i.dialog_no ORDER BY e.seq DESC LIMIT 1
), 0) LIMIT 1000;

-- name: dialogs_indexed
SELECT
  d.dialog_id, d.session_no, d.dialog_no, coalesce(i.upto, 0), d.parent_id, d.shared, d.ranges, d.inherited, d.check_sum
FROM {s}dialogs AS d LEFT JOIN {s}indexed AS i ON i.session_no = d.session_no AND i.dialog_no = d.dialog_no
WHERE d.dialog_no > :after ORDER BY d.dialog_no LIMIT :rows;

-- name: text_get
SELECT x.deflated FROM {s}texts AS x WHERE x.session_no = :session_no AND x.dialog_no = :dialog_no AND x.seq = :seq;

-- name: references_of
SELECT digest FROM {s}payload_refs WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: sources_all
SELECT f.source_no, f.session_no, s.session_id, f.identity, f.raw, f.record_index
FROM {s}sources AS f LEFT JOIN {s}sessions AS s ON s.session_no = f.session_no ORDER BY f.source_no;

-- name: session_of
SELECT s.session_id FROM {s}dialogs AS d JOIN {s}sessions AS s ON s.session_no = d.session_no WHERE d.dialog_id = :dialog_id;
