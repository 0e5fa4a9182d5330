-- The first format, in a schema of its own, made to be split over several databases: a dialog's id ends in the last four digits of its
-- session's, and the session's number is the first key column of entries, texts and references.
--
-- There is no foreign key on the way of an append: one would lock another row. A body lies in the row of its header: bodies of more than 2 KB
-- are moved out of the row anyway.
--
-- Columns that hold texts from outside compare by code point (COLLATE "C"), and hold U+0000, which PostgreSQL's texts cannot, as
-- palaver.store.postgres.texts spells it. The planner's statistics would quote what people said and outlive an erasure, so none are kept of such
-- columns (SET STATISTICS 0).

CREATE TABLE migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  sha256 text NOT NULL,
  applied_at double precision NOT NULL
);

COMMENT ON TABLE migrations IS 'palaver store';

CREATE TABLE sessions (
  session_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id text COLLATE "C" NOT NULL UNIQUE,
  tenant text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  workdir text COLLATE "C" NOT NULL,
  created_at double precision NOT NULL,
  trashed_at double precision,
  root text COLLATE "C",
  metadata text NOT NULL
);

ALTER TABLE sessions
  ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN subject SET STATISTICS 0, ALTER COLUMN workdir SET STATISTICS 0,
  ALTER COLUMN metadata SET STATISTICS 0;

CREATE INDEX sessions_of_tenant ON sessions (tenant);
CREATE INDEX sessions_named ON sessions (name);
CREATE INDEX sessions_about ON sessions (subject);
CREATE INDEX sessions_trashed ON sessions (trashed_at) WHERE trashed_at IS NOT NULL;

-- Beside the sessions, because every append writes it.
CREATE TABLE activity (
  session_no bigint PRIMARY KEY,
  updated_at double precision NOT NULL
);

CREATE INDEX activity_newest ON activity (updated_at);

-- check_sum is palaver.store.sql.rows.node_sum.
-- ranges holds what a dialog shares beyond the first `shared` ranges of its parent: so a chain of forks grows with its length.
CREATE TABLE dialogs (
  dialog_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dialog_id text COLLATE "C" NOT NULL UNIQUE,
  session_no bigint NOT NULL REFERENCES sessions,
  place integer NOT NULL,
  owner text COLLATE "C" NOT NULL,
  parent_id text COLLATE "C",
  shared integer NOT NULL,
  ranges text NOT NULL,
  split_point bigint,
  last_n bigint,
  first_k bigint,
  inherited bigint NOT NULL,
  created_at double precision NOT NULL,
  relation text COLLATE "C" NOT NULL,
  metadata text NOT NULL,
  check_sum bigint NOT NULL,
  UNIQUE (session_no, place)
);

ALTER TABLE dialogs ALTER COLUMN owner SET STATISTICS 0, ALTER COLUMN metadata SET STATISTICS 0;

-- calls and open_calls are JSON lists of ids, NULL for none. check_sum is palaver.store.records.header_sum. body is NULL when it was lost.
CREATE TABLE entries (
  session_no bigint NOT NULL,
  dialog_no bigint NOT NULL,
  seq integer NOT NULL,
  turn_head integer NOT NULL,
  view_base integer NOT NULL,
  open_turn integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  number integer NOT NULL,
  calls text,
  open_calls text,
  response text COLLATE "C" NOT NULL,
  at double precision NOT NULL,
  size bigint NOT NULL,
  total bigint NOT NULL,
  digest bytea NOT NULL,
  speaker text NOT NULL DEFAULT '',
  blocks text NOT NULL DEFAULT '',
  continues text NOT NULL DEFAULT '',
  check_sum bigint NOT NULL,
  body bytea,
  PRIMARY KEY (session_no, dialog_no, seq)
);

ALTER TABLE entries
  ALTER COLUMN calls SET STATISTICS 0, ALTER COLUMN open_calls SET STATISTICS 0, ALTER COLUMN response SET STATISTICS 0,
  ALTER COLUMN digest SET STATISTICS 0, ALTER COLUMN body SET STATISTICS 0;

CREATE INDEX entries_by_kind ON entries (session_no, dialog_no, kind, seq) WHERE kind NOT IN ('message', 'call_started');

-- put_at is when a payload was stored last: a sweep leaves it alone while it may still be named.
CREATE TABLE blobs (
  digest bytea PRIMARY KEY,
  size bigint NOT NULL,
  put_at double precision NOT NULL
);

CREATE TABLE blob_bytes (
  digest bytea PRIMARY KEY,
  data bytea NOT NULL
);

ALTER TABLE blobs ALTER COLUMN digest SET STATISTICS 0;
ALTER TABLE blob_bytes
  ALTER COLUMN digest SET STATISTICS 0, ALTER COLUMN data SET STATISTICS 0, ALTER COLUMN data SET STORAGE EXTERNAL;

-- Which entry names which payload (palaver.store.erasing.references). Of a source, dialog_no is 0 and seq the source's number.
CREATE TABLE payload_refs (
  session_no bigint NOT NULL,
  dialog_no bigint NOT NULL,
  seq bigint NOT NULL,
  digest bytea NOT NULL,
  PRIMARY KEY (session_no, dialog_no, seq, digest)
);

ALTER TABLE payload_refs ALTER COLUMN digest SET STATISTICS 0;
CREATE INDEX refs_of_payload ON payload_refs (digest);

CREATE TABLE sources (
  source_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  identity text COLLATE "C" NOT NULL UNIQUE,
  session_no bigint NOT NULL REFERENCES sessions,
  format text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  raw text COLLATE "C",
  record_index text COLLATE "C",
  imported_at double precision NOT NULL
);

ALTER TABLE sources
  ALTER COLUMN identity SET STATISTICS 0, ALTER COLUMN path SET STATISTICS 0, ALTER COLUMN digest SET STATISTICS 0,
  ALTER COLUMN raw SET STATISTICS 0, ALTER COLUMN record_index SET STATISTICS 0;
CREATE INDEX sources_of_session ON sources (session_no);

-- The full-text index is derived: `indexed` says how many entries of a dialog are in it, `texts` holds their texts, deflated, which decide
-- what matches, and their tokens as palaver.store.text cuts them, with the session's number after a number sign, which no token can be;
-- and once more those of what people and models said. A text with more tokens than a tsvector has room for has a number sign instead of all.

CREATE TABLE indexed (
  session_no bigint NOT NULL,
  dialog_no bigint NOT NULL,
  upto integer NOT NULL,
  PRIMARY KEY (session_no, dialog_no)
);

CREATE TABLE texts (
  session_no bigint NOT NULL,
  dialog_no bigint NOT NULL,
  seq integer NOT NULL,
  text_no bigint GENERATED ALWAYS AS IDENTITY,
  deflated bytea NOT NULL,
  tokens tsvector NOT NULL,
  said tsvector NOT NULL,
  PRIMARY KEY (session_no, dialog_no, seq)
);

ALTER TABLE texts
  ALTER COLUMN deflated SET STATISTICS 0, ALTER COLUMN deflated SET STORAGE EXTERNAL, ALTER COLUMN tokens SET STATISTICS 0, ALTER COLUMN said SET STATISTICS 0;
CREATE INDEX texts_by_number ON texts (text_no);
CREATE INDEX texts_tokens ON texts USING gin (tokens);

-- Who may do what at present (palaver.store.lease). A row stays when its lease has ended: its token must never be given twice.
CREATE TABLE leases (
  name text COLLATE "C" PRIMARY KEY,
  holder text COLLATE "C" NOT NULL,
  token bigint NOT NULL,
  until double precision NOT NULL
);

-- Receipts of erasures in their order; `pending` says what an erasure still has to do, JSON.
CREATE TABLE receipts (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  receipt_id text COLLATE "C" NOT NULL UNIQUE,
  receipt text NOT NULL,
  pending text NOT NULL
);

ALTER TABLE receipts ALTER COLUMN receipt SET STATISTICS 0, ALTER COLUMN pending SET STATISTICS 0;

-- What was erased: a session or dialog by its id, a source by the SHA-256 of its identity.
CREATE TABLE gone (
  thing text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  at double precision NOT NULL,
  receipt_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (thing, name)
);

-- The files that a session was written to: digest and inode tell whether a file is still the one that was written.
CREATE TABLE files (
  session_no bigint NOT NULL REFERENCES sessions,
  path text COLLATE "C" NOT NULL,
  digest text NOT NULL,
  inode bigint NOT NULL,
  PRIMARY KEY (session_no, path)
);

ALTER TABLE files ALTER COLUMN path SET STATISTICS 0;
