-- What is looked for from the end of a log, however far back it stands (palaver.log.SOUGHT), is found by an index: where a turn began, what waits, who was asked.

CREATE INDEX headers_sought ON headers (kind, id)
WHERE kind IN ('turn_started', 'inbox', 'invocation');
