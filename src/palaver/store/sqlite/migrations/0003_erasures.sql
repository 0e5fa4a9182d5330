-- What was erased, and the proof of it (palaver.store.erasing).

-- Receipts in the order in which they were given; `pending` says what the erasure still has to do, JSON.
CREATE TABLE receipts (
  number INTEGER PRIMARY KEY,
  receipt_id TEXT NOT NULL UNIQUE,
  receipt TEXT NOT NULL,
  pending TEXT NOT NULL
) STRICT;

-- What is not there any more because it was erased: a session or dialog by its id, a source by the SHA-256 of its identity.
CREATE TABLE gone (
  thing TEXT NOT NULL,
  name TEXT NOT NULL,
  at REAL NOT NULL,
  receipt_id TEXT NOT NULL,
  PRIMARY KEY (thing, name)
) STRICT, WITHOUT ROWID;

-- The files that a session was written to, as far as palaver wrote them.
CREATE TABLE files (
  session_no INTEGER NOT NULL REFERENCES sessions,
  path TEXT NOT NULL,
  PRIMARY KEY (session_no, path)
) STRICT, WITHOUT ROWID;
