-- The first format, made to be split over several databases: a dialog's id ends in the last four digits of its session's, and the session's
-- number is the first key column of headers, texts and references.

CREATE TABLE migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  applied_at REAL NOT NULL
) STRICT;

-- AUTOINCREMENT: a number is never given twice, so a reader that is between two pages cannot end up in something newer.
CREATE TABLE sessions (
  session_no INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  workdir TEXT NOT NULL,
  created_at REAL NOT NULL,
  trashed_at REAL,
  root TEXT,
  metadata TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_of_tenant ON sessions (tenant);
CREATE INDEX sessions_named ON sessions (name);
CREATE INDEX sessions_about ON sessions (subject);
CREATE INDEX sessions_trashed ON sessions (trashed_at) WHERE trashed_at IS NOT NULL;

-- Beside the sessions, because every append writes it: a session's row may be long.
CREATE TABLE activity (
  session_no INTEGER PRIMARY KEY REFERENCES sessions,
  updated_at REAL NOT NULL
) STRICT;

CREATE INDEX activity_newest ON activity (updated_at);

-- check_sum is palaver.store.sql.rows.node_sum.
-- ranges holds what a dialog shares beyond the first `shared` ranges of its parent: so a chain of forks grows with its length.
CREATE TABLE dialogs (
  dialog_no INTEGER PRIMARY KEY AUTOINCREMENT,
  dialog_id TEXT NOT NULL UNIQUE,
  session_no INTEGER NOT NULL REFERENCES sessions,
  place INTEGER NOT NULL,
  owner TEXT NOT NULL,
  parent_id TEXT,
  shared INTEGER NOT NULL,
  ranges TEXT NOT NULL,
  split_point INTEGER,
  last_n INTEGER,
  first_k INTEGER,
  inherited INTEGER NOT NULL,
  created_at REAL NOT NULL,
  relation TEXT NOT NULL,
  metadata TEXT NOT NULL,
  check_sum INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX dialogs_of_session ON dialogs (session_no, place);

-- calls and open_calls are JSON lists of ids, NULL for none. check_sum is palaver.store.records.header_sum.
-- Bodies are in a table of their own, numbered as they come: a body is added at its end, where SQLite only fills the last page, and headers
-- are read without them.
CREATE TABLE headers (
  session_no INTEGER NOT NULL,
  dialog_no INTEGER NOT NULL,
  seq INTEGER NOT NULL,
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
  speaker TEXT NOT NULL DEFAULT '',
  blocks TEXT NOT NULL DEFAULT '',
  continues TEXT NOT NULL DEFAULT '',
  check_sum INTEGER NOT NULL,
  body_no INTEGER NOT NULL,
  PRIMARY KEY (session_no, dialog_no, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX headers_by_kind ON headers (session_no, dialog_no, kind, seq) WHERE kind NOT IN ('message', 'call_started');

CREATE TABLE bodies (
  body_no INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;

-- put_at is when a payload was stored last: a sweep leaves it alone while it may still be named.
CREATE TABLE blobs (
  digest BLOB PRIMARY KEY,
  size INTEGER NOT NULL,
  put_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blob_bytes (
  digest BLOB PRIMARY KEY,
  data BLOB NOT NULL
) STRICT;

-- Which entry names which payload (palaver.store.erasing.references). Of a source, dialog_no is 0 and seq the source's number.
CREATE TABLE payload_refs (
  session_no INTEGER NOT NULL,
  dialog_no INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  digest BLOB NOT NULL,
  PRIMARY KEY (session_no, dialog_no, seq, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX refs_of_payload ON payload_refs (digest);

CREATE TABLE sources (
  source_no INTEGER PRIMARY KEY AUTOINCREMENT,
  identity TEXT NOT NULL UNIQUE,
  session_no INTEGER NOT NULL REFERENCES sessions,
  format TEXT NOT NULL,
  path TEXT NOT NULL,
  digest TEXT NOT NULL,
  raw TEXT,
  record_index TEXT,
  imported_at REAL NOT NULL
) STRICT;

CREATE INDEX sources_of_session ON sources (session_no);

-- The full-text index is derived: `indexed` says how many entries of a dialog are in it, `texts` holds their texts, deflated, which decide
-- what matches. `tokens` holds the tokens of palaver.store.text, of what people and models said and of the rest; the ascii tokenizer keeps them
-- as they are. contentless_delete: a row can be
-- deleted without its text; 'optimize' then removes its words from the file.

CREATE TABLE indexed (
  session_no INTEGER NOT NULL,
  dialog_no INTEGER NOT NULL,
  upto INTEGER NOT NULL,
  PRIMARY KEY (session_no, dialog_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE texts (
  session_no INTEGER NOT NULL,
  dialog_no INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  text_no INTEGER NOT NULL,
  deflated BLOB NOT NULL,
  PRIMARY KEY (session_no, dialog_no, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX texts_by_number ON texts (text_no);

CREATE VIRTUAL TABLE tokens USING fts5 (
  said, rest, session,
  content='', contentless_delete=1, tokenize="ascii"
);

-- Who may do what at present (palaver.store.lease). A row stays when its lease has ended: its token must never be given twice.
CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  token INTEGER NOT NULL,
  until REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Receipts of erasures in their order; `pending` says what an erasure still has to do, JSON.
CREATE TABLE receipts (
  number INTEGER PRIMARY KEY,
  receipt_id TEXT NOT NULL UNIQUE,
  receipt TEXT NOT NULL,
  pending TEXT NOT NULL
) STRICT;

-- What was erased: a session or dialog by its id, a source by the SHA-256 of its identity.
CREATE TABLE gone (
  thing TEXT NOT NULL,
  name TEXT NOT NULL,
  at REAL NOT NULL,
  receipt_id TEXT NOT NULL,
  PRIMARY KEY (thing, name)
) STRICT, WITHOUT ROWID;

-- The files that a session was written to: digest and inode tell whether a file is still the one that was written.
CREATE TABLE files (
  session_no INTEGER NOT NULL REFERENCES sessions,
  path TEXT NOT NULL,
  digest TEXT NOT NULL,
  inode INTEGER NOT NULL,
  PRIMARY KEY (session_no, path)
) STRICT, WITHOUT ROWID;
