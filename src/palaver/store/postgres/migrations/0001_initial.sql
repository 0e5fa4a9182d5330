-- The first format, in a schema of its own.
--
-- An entry is named by its dialog's number and its own: the primary key makes two writers a conflict. No append updates anything, and there
-- is no foreign key on the way: one would lock the dialog's row, which is a write. A body lies in the row of its header: a table of its own
-- would double what an append costs the server (measured: 80 µs against 56), and bodies of more than 2 KB are moved out of the row anyway.
--
-- Columns that hold texts from outside compare by code point (COLLATE "C"), and hold U+0000, which PostgreSQL's texts cannot, as
-- palaver.store.postgres.texts spells it. Metadata and lists of ids are JSON in ASCII.

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
  name text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  workdir text COLLATE "C" NOT NULL,
  created_at double precision NOT NULL,
  trashed_at double precision,
  root text COLLATE "C",
  metadata text NOT NULL
);

CREATE TABLE dialogs (
  dialog_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dialog_id text COLLATE "C" NOT NULL UNIQUE,
  session_no bigint NOT NULL REFERENCES sessions,
  place integer NOT NULL,
  owner text COLLATE "C" NOT NULL,
  parent_id text COLLATE "C",
  ranges text NOT NULL,
  split_point bigint,
  last_n bigint,
  first_k bigint,
  inherited bigint NOT NULL,
  created_at double precision NOT NULL,
  relation text COLLATE "C" NOT NULL,
  metadata text NOT NULL,
  UNIQUE (session_no, place)
);

-- body is NULL when it was lost.
CREATE TABLE entries (
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
  body bytea,
  PRIMARY KEY (dialog_no, seq)
);

-- Where each dialog ends: how many own entries it holds, and the time of the newest.
CREATE VIEW dialog_ends AS
SELECT d.dialog_no, d.dialog_id, d.session_no, d.created_at, coalesce(n.seq + 1, 0) AS length, n.at
FROM dialogs AS d LEFT JOIN LATERAL (
  SELECT h.seq, h.at FROM entries AS h WHERE h.dialog_no = d.dialog_no ORDER BY h.seq DESC LIMIT 1
) AS n ON true;

-- When each session was last active: when it was made, when its dialogs were, and the time of each dialog's newest entry.
CREATE VIEW session_activity AS
SELECT s.session_no, greatest(s.created_at, a.active_at) AS updated_at
FROM sessions AS s LEFT JOIN LATERAL (
  SELECT max(greatest(e.created_at, e.at)) AS active_at FROM dialog_ends AS e WHERE e.session_no = s.session_no
) AS a ON true;

CREATE TABLE blobs (
  digest bytea PRIMARY KEY,
  data bytea NOT NULL
);

ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE sources (
  identity text COLLATE "C" PRIMARY KEY,
  session_no bigint NOT NULL REFERENCES sessions,
  format text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  digest text COLLATE "C" NOT NULL,
  raw text COLLATE "C",
  record_index text COLLATE "C",
  imported_at double precision NOT NULL
);

CREATE INDEX sources_of_session ON sources (session_no);

-- The full-text index: derived from the log, behind a watermark, dropped and made again at will.
-- `indexed` says how many entries of a dialog are in it. `texts` holds their text, deflated: it decides what matches and gives the snippets.
-- `tokens` holds only the tokens, cut by palaver.store.text; no dictionary of the server touches them. An entry whose tokens fill more than
-- one tsvector is split over several rows.

CREATE TABLE indexed (
  dialog_no bigint PRIMARY KEY REFERENCES dialogs,
  upto integer NOT NULL
);

CREATE TABLE texts (
  dialog_no bigint NOT NULL,
  seq integer NOT NULL,
  deflated bytea NOT NULL,
  PRIMARY KEY (dialog_no, seq)
);

ALTER TABLE texts ALTER COLUMN deflated SET STORAGE EXTERNAL;

CREATE TABLE tokens (
  dialog_no bigint NOT NULL,
  seq integer NOT NULL,
  part integer NOT NULL,
  split boolean NOT NULL,
  found tsvector NOT NULL,
  PRIMARY KEY (dialog_no, seq, part)
);

CREATE INDEX tokens_found ON tokens USING gin (found);

-- Who follows a dialog right now. An append tells nobody unless someone is here: a notification takes a lock of the whole server.
-- Nothing is lost with it, so it is not in the write-ahead log and empty after a crash.
CREATE UNLOGGED TABLE followers (
  dialog_no bigint PRIMARY KEY,
  until timestamptz NOT NULL
);

CREATE TABLE leases (
  name text COLLATE "C" PRIMARY KEY,
  holder text COLLATE "C" NOT NULL,
  token bigint NOT NULL,
  until timestamptz NOT NULL
);
