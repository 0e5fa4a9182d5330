-- When each payload was put last, to ten minutes (palaver.store.sweeping): one that nothing names is left alone while it may still be named.
-- The clock is the server's. What was there before counts as put now.

ALTER TABLE blobs ADD COLUMN put_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE blobs ALTER COLUMN put_at SET DEFAULT clock_timestamp();
