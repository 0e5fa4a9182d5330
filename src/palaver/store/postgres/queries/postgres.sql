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
INSERT INTO {s}texts (session_no, dialog_no, seq, deflated, tokens)
VALUES (
  :session_no, :dialog_no, :seq, :deflated,
  ARRAY(SELECT DISTINCT unnest(string_to_array(:parts || ' ' || :wholes || ' #' || CAST(:session_no AS text), ' ')))
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
