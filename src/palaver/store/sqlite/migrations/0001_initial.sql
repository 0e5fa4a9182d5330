-- The first format.
--
-- An entry is named by one integer, dialog_no << 32 | seq: the rowid of its header. So a header is found by one descent, the newest one of a
-- dialog by the same, and no second index has to be kept.
-- Bodies are numbered as they come, whichever dialog they belong to, and a header names its body. So a body is always added at the end of
-- its table, where SQLite only fills the last page: in the middle, it would rewrite the neighbours of every page that overflows.
-- Nothing is updated by an append: when a session was last active is read from the newest headers of its dialogs.

CREATE TABLE migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  applied_at REAL NOT NULL
) STRICT;

CREATE TABLE sessions (
  session_no INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  workdir TEXT NOT NULL,
  created_at REAL NOT NULL,
  trashed_at REAL,
  root TEXT,
  metadata TEXT NOT NULL
) STRICT;

-- AUTOINCREMENT: a number is never given twice, so what it named can never be mistaken for something newer.
CREATE TABLE dialogs (
  dialog_no INTEGER PRIMARY KEY AUTOINCREMENT,
  dialog_id TEXT NOT NULL UNIQUE,
  session_no INTEGER NOT NULL REFERENCES sessions,
  place INTEGER NOT NULL,
  owner TEXT NOT NULL,
  parent_id TEXT,
  ranges TEXT NOT NULL,
  split_point INTEGER,
  last_n INTEGER,
  first_k INTEGER,
  inherited INTEGER NOT NULL,
  created_at REAL NOT NULL,
  relation TEXT NOT NULL,
  metadata TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX dialogs_of_session ON dialogs (session_no, place);

-- calls and open_calls are JSON lists of ids, NULL for none.
CREATE TABLE headers (
  id INTEGER PRIMARY KEY,
  turn_head INTEGER NOT NULL,
  view_base INTEGER NOT NULL,
  open_turn INTEGER NOT NULL,
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  number INTEGER NOT NULL,
  calls TEXT,
  open_calls TEXT,
  response TEXT NOT NULL,
  at REAL NOT NULL,
  size INTEGER NOT NULL,
  total INTEGER NOT NULL,
  digest BLOB NOT NULL,
  body_no INTEGER NOT NULL
) STRICT;

CREATE TABLE bodies (
  body_no INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;

-- Where each dialog ends: the id of its newest entry, NULL when it has none.
CREATE VIEW dialog_ends AS
SELECT
  dialog_no, dialog_id, session_no, created_at,
  (SELECT id FROM headers WHERE id BETWEEN dialog_no << 32 AND dialog_no << 32 | 0xffffffff ORDER BY id DESC LIMIT 1) AS newest
FROM dialogs;

-- When each session was last active: when it was made, when its dialogs were, and the time of each dialog's newest entry.
CREATE VIEW session_activity AS
SELECT
  session_no,
  max(created_at, coalesce((
    SELECT max(max(e.created_at, coalesce((SELECT at FROM headers WHERE id = e.newest), e.created_at)))
    FROM dialog_ends AS e WHERE e.session_no = sessions.session_no
  ), created_at)) AS updated_at
FROM sessions;

CREATE TABLE blobs (
  blob_no INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  data BLOB NOT NULL
) STRICT;

CREATE TABLE sources (
  identity TEXT PRIMARY KEY,
  session_no INTEGER NOT NULL REFERENCES sessions,
  format TEXT NOT NULL,
  path TEXT NOT NULL,
  digest TEXT NOT NULL,
  raw TEXT,
  record_index TEXT,
  imported_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sources_of_session ON sources (session_no);

-- The full-text index: derived from the log, behind a watermark, dropped and made again at will.
-- `indexed` says how many entries of a dialog are in it. `texts` holds their text, deflated: it decides what matches and gives the snippets.
-- `tokens` holds only the tokens, cut by palaver.store.text; the ascii tokenizer takes them as they are, for they hold no ASCII but
-- letters, digits and blanks. contentless_delete: a row can be deleted without its text being known; 'optimize' then takes its words out
-- of the file.

CREATE TABLE indexed (
  dialog_no INTEGER PRIMARY KEY REFERENCES dialogs,
  upto INTEGER NOT NULL
) STRICT;

CREATE TABLE texts (
  id INTEGER PRIMARY KEY,
  deflated BLOB NOT NULL
) STRICT;

CREATE VIRTUAL TABLE tokens USING fts5 (
  parts, wholes,
  content='', contentless_delete=1, tokenize="ascii"
);
