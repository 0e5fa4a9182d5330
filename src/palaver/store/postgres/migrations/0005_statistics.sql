-- The planner's statistics quote values of the columns that are analysed, which the server does by itself: names, words, whole payloads. They would
-- outlive what was erased. No plan needs those of what people said, so none are kept: 0 is none, and to give a column the type that it has
-- throws away what there is, and touches no row and no index (https://www.postgresql.org/docs/current/sql-altertable.html).

ALTER TABLE sessions
  ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN name TYPE text COLLATE "C",
  ALTER COLUMN subject SET STATISTICS 0, ALTER COLUMN subject TYPE text COLLATE "C",
  ALTER COLUMN workdir SET STATISTICS 0, ALTER COLUMN workdir TYPE text COLLATE "C",
  ALTER COLUMN metadata SET STATISTICS 0, ALTER COLUMN metadata TYPE text;

ALTER TABLE dialogs
  ALTER COLUMN owner SET STATISTICS 0, ALTER COLUMN owner TYPE text COLLATE "C",
  ALTER COLUMN metadata SET STATISTICS 0, ALTER COLUMN metadata TYPE text;

ALTER TABLE entries
  ALTER COLUMN calls SET STATISTICS 0, ALTER COLUMN calls TYPE text,
  ALTER COLUMN open_calls SET STATISTICS 0, ALTER COLUMN open_calls TYPE text,
  ALTER COLUMN response SET STATISTICS 0, ALTER COLUMN response TYPE text COLLATE "C",
  ALTER COLUMN digest SET STATISTICS 0, ALTER COLUMN digest TYPE bytea,
  ALTER COLUMN body SET STATISTICS 0, ALTER COLUMN body TYPE bytea;

ALTER TABLE blobs
  ALTER COLUMN digest SET STATISTICS 0, ALTER COLUMN digest TYPE bytea,
  ALTER COLUMN data SET STATISTICS 0, ALTER COLUMN data TYPE bytea;

ALTER TABLE sources
  ALTER COLUMN identity SET STATISTICS 0, ALTER COLUMN identity TYPE text COLLATE "C",
  ALTER COLUMN path SET STATISTICS 0, ALTER COLUMN path TYPE text COLLATE "C",
  ALTER COLUMN digest SET STATISTICS 0, ALTER COLUMN digest TYPE text COLLATE "C",
  ALTER COLUMN raw SET STATISTICS 0, ALTER COLUMN raw TYPE text COLLATE "C",
  ALTER COLUMN record_index SET STATISTICS 0, ALTER COLUMN record_index TYPE text COLLATE "C";

ALTER TABLE texts ALTER COLUMN deflated SET STATISTICS 0, ALTER COLUMN deflated TYPE bytea;
ALTER TABLE tokens ALTER COLUMN found SET STATISTICS 0, ALTER COLUMN found TYPE tsvector;
ALTER TABLE files ALTER COLUMN path SET STATISTICS 0, ALTER COLUMN path TYPE text COLLATE "C";
ALTER TABLE receipts
  ALTER COLUMN receipt SET STATISTICS 0, ALTER COLUMN receipt TYPE text,
  ALTER COLUMN pending SET STATISTICS 0, ALTER COLUMN pending TYPE text;
ALTER TABLE leases
  ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN name TYPE text COLLATE "C",
  ALTER COLUMN holder SET STATISTICS 0, ALTER COLUMN holder TYPE text COLLATE "C";
