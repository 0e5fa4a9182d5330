-- What is looked for from the end of a log, however far back it stands (palaver.log.SOUGHT), is found by an index: where a turn began, what waits, who was asked.

CREATE INDEX entries_sought ON entries (dialog_no, kind, seq)
WHERE kind IN ('turn_started', 'inbox', 'invocation');
