-- name: lag
SELECT coalesce(sum(e.length - coalesce(i.upto, 0)), 0)
FROM dialog_ends AS e LEFT JOIN indexed AS i USING (dialog_no);

-- name: behind
-- The dialogs that have entries beyond their watermark: number, its session's number, watermark, length.
SELECT e.dialog_no, e.session_no, coalesce(i.upto, 0), e.length
FROM dialog_ends AS e LEFT JOIN indexed AS i USING (dialog_no)
WHERE e.length > coalesce(i.upto, 0)
ORDER BY e.dialog_no;

-- name: behind_in
-- The same of one session.
SELECT e.dialog_no, e.session_no, coalesce(i.upto, 0), e.length
FROM dialog_ends AS e LEFT JOIN indexed AS i USING (dialog_no)
WHERE e.session_no = (SELECT session_no FROM sessions WHERE session_id = %s) AND e.length > coalesce(i.upto, 0)
ORDER BY e.dialog_no;

-- name: watermark_lock
-- The watermark of a dialog, which nobody else moves until the end of the transaction.
INSERT INTO indexed VALUES (%s, 0) ON CONFLICT (dialog_no) DO UPDATE SET upto = indexed.upto RETURNING upto;

-- name: watermark_set
UPDATE indexed SET upto = %s WHERE dialog_no = %s;

-- name: text_add
INSERT INTO texts VALUES (%s, %s, %s);

-- name: tokens_add
INSERT INTO tokens VALUES (%s, %s, %s, %s, %s::tsvector);

-- name: index_drop
TRUNCATE texts, tokens, indexed;

-- name: search
-- Candidates, best first: their text decides. Of an entry that is split over several rows any row may hold any of the words.
SELECT f.dialog_no, f.seq, d.dialog_id, s.session_id, h.kind, h.role, x.deflated, f.rank
FROM (
    SELECT t.dialog_no, t.seq, max(ts_rank(t.found, %(rank)s::tsquery, 1)) AS rank
    FROM tokens AS t
    WHERE (t.found @@ %(whole)s::tsquery AND NOT t.split) OR (t.found @@ %(some)s::tsquery AND t.split)
    GROUP BY t.dialog_no, t.seq
  ) AS f
  JOIN entries AS h USING (dialog_no, seq)
  JOIN dialogs AS d USING (dialog_no)
  JOIN sessions AS s USING (session_no)
  JOIN texts AS x USING (dialog_no, seq)
WHERE s.trashed_at IS NULL
ORDER BY f.rank DESC, f.dialog_no, f.seq
LIMIT %(rows)s OFFSET %(offset)s;
