-- name: dialog_lock
-- Nobody else appends to the dialog until the end of the transaction.
SELECT 1 FROM {s}dialogs WHERE dialog_id = :dialog_id FOR NO KEY UPDATE;

-- name: entry_add
INSERT INTO {s}entries (session_no, dialog_no, {names}, check_sum, body)
SELECT session_no, dialog_no, {values}, :check_sum, :body FROM {s}dialogs WHERE dialog_id = :dialog_id;

-- name: header_set
UPDATE {s}entries SET kind = :kind, size = :size, total = :total, digest = :digest, check_sum = :check_sum
WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: body_set
UPDATE {s}entries SET body = :body WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: text_add
INSERT INTO {s}texts (session_no, dialog_no, seq, deflated, tokens, said)
VALUES (
  :session_no, :dialog_no, :seq, :deflated,
  array_to_tsvector(CAST(:every AS text[]) || ('#' || CAST(:session_no AS text))), array_to_tsvector(CAST(:said AS text[]))
);

-- name: text_remove
DELETE FROM {s}texts WHERE session_no = :session_no AND dialog_no = :dialog_no AND seq = :seq;

-- name: entries_remove
WITH indexed_texts AS (DELETE FROM {s}texts WHERE session_no = :session_no AND dialog_no = :dialog_no)
DELETE FROM {s}entries WHERE session_no = :session_no AND dialog_no = :dialog_no;

-- name: tokens_loose
-- Tokens lie in the row of their text.
SELECT 0, 0 WHERE false;

-- name: clock
SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision);

-- name: partitions
SELECT CAST(t.relname AS text), CAST(p.relname AS text), pg_get_expr(p.relpartbound, p.oid)
FROM pg_inherits AS i JOIN pg_class AS t ON t.oid = i.inhparent JOIN pg_class AS p ON p.oid = i.inhrelid
WHERE t.relnamespace = CAST(CAST(:schema AS text) AS regnamespace) AND t.relkind = 'p';

-- name: sessions_strayed
SELECT session_id FROM {s}sessions
WHERE session_no >> CAST(:bits AS integer) <> CAST(CAST('x' || right(session_id, 4) AS bit(16)) AS integer) % CAST(:partitions AS integer)
ORDER BY session_id LIMIT 1000;

-- name: newest_texts
-- The newest texts, whether they have the tokens of a query, and whether these were said.
SELECT x.text_no, x.tokens @@ CAST(:query AS tsquery), x.said @@ CAST(:query AS tsquery)
FROM {s}texts AS x WHERE x.text_no < :before ORDER BY x.text_no DESC LIMIT :rows;

-- name: matching
-- OFFSET 0 keeps the planner, which knows nothing of how many match, from reading texts in the order of their numbers until enough do.
SELECT x.text_no, x.said
FROM (
  SELECT x.text_no, x.said @@ CAST(:query AS tsquery) AS said FROM {s}texts AS x
  WHERE x.tokens @@ CAST(:query AS tsquery) AND x.text_no >= :since OFFSET 0
) AS x
WHERE x.text_no < :before ORDER BY x.text_no DESC LIMIT :rows;

-- name: hits
-- The texts are chosen before their entries are looked for: the planner would read whole tables.
SELECT x.text_no, d.dialog_id, x.seq, s.session_id, e.kind, e.role, e.at, s.trashed_at, x.deflated
FROM (
  SELECT x.session_no, x.dialog_no, x.seq, x.text_no, x.deflated FROM {s}texts AS x
  WHERE /*where*/ OFFSET 0
) AS x
  CROSS JOIN LATERAL (SELECT s.session_id, s.trashed_at FROM {s}sessions AS s WHERE s.session_no = x.session_no LIMIT 1) AS s
  CROSS JOIN LATERAL (SELECT d.dialog_id FROM {s}dialogs AS d WHERE d.dialog_no = x.dialog_no LIMIT 1) AS d
  CROSS JOIN LATERAL (
    SELECT e.kind, e.role, e.at FROM {s}entries AS e
    WHERE e.session_no = x.session_no AND e.dialog_no = x.dialog_no AND e.seq = x.seq LIMIT 1
  ) AS e
ORDER BY x.text_no DESC;
