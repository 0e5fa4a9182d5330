-- When each payload was put last, to ten minutes (palaver.store.sweeping): one that nothing names is left alone while it may still be named.
-- Beside the payloads, for to change a row is to write all of it again. What was there before counts as put now.

CREATE TABLE blob_times (
  blob_no INTEGER PRIMARY KEY REFERENCES blobs ON DELETE CASCADE,
  at REAL NOT NULL
) STRICT;

INSERT INTO blob_times SELECT blob_no, unixepoch('now', 'subsec') FROM blobs;
