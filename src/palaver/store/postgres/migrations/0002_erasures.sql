-- What was erased, and the proof of it (palaver.store.erasing).

-- Receipts in the order in which they were given; `pending` says what the erasure still has to do, JSON.
CREATE TABLE receipts (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  receipt_id text COLLATE "C" NOT NULL UNIQUE,
  receipt text NOT NULL,
  pending text NOT NULL
);

-- What is not there any more because it was erased: a session or dialog by its id, a source by the SHA-256 of its identity.
CREATE TABLE gone (
  thing text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  at double precision NOT NULL,
  receipt_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (thing, name)
);

-- The files that a session was written to, as far as palaver wrote them.
CREATE TABLE files (
  session_no bigint NOT NULL REFERENCES sessions,
  path text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_no, path)
);
