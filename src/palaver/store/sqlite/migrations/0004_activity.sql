-- When each session was last active, to a minute (palaver.store.activity): what a listing of the newest walks.
-- Names and subjects are found by an index; so are the entries that hold beyond the place where they stand, for forks that leave them out.

CREATE TABLE activity (
  session_no INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
  at REAL NOT NULL
) STRICT;

INSERT INTO activity SELECT session_no, updated_at FROM session_activity;

CREATE INDEX activity_newest ON activity (at);
CREATE INDEX sessions_named ON sessions (name);
CREATE INDEX sessions_about ON sessions (subject);
CREATE INDEX sessions_trashed ON sessions (trashed_at) WHERE trashed_at IS NOT NULL;

CREATE INDEX headers_holding ON headers (id)
WHERE kind IN ('instructions', 'toolset', 'model_change', 'mode_change', 'pin', 'constraint', 'quarantine');
