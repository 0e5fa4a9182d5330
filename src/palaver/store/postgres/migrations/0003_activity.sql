-- When each session was last active, to a minute (palaver.store.activity): what a listing of the newest walks.
-- Names and subjects are found by an index; so are the entries that hold beyond the place where they stand, for forks that leave them out.

CREATE TABLE activity (
  session_no bigint PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
  at double precision NOT NULL
);

INSERT INTO activity SELECT session_no, updated_at FROM session_activity;

CREATE INDEX activity_newest ON activity (at);
CREATE INDEX sessions_named ON sessions (name);
CREATE INDEX sessions_about ON sessions (subject);
CREATE INDEX sessions_trashed ON sessions (trashed_at) WHERE trashed_at IS NOT NULL;

CREATE INDEX entries_holding ON entries (dialog_no, seq)
WHERE kind IN ('instructions', 'toolset', 'model_change', 'mode_change', 'pin', 'constraint', 'quarantine');
