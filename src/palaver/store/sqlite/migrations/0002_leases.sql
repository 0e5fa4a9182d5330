-- Who may do what at present (palaver.store.lease). A row stays when its lease has ended: its token must never be given twice.

CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  token INTEGER NOT NULL,
  until REAL NOT NULL
) STRICT, WITHOUT ROWID;
