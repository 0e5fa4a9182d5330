"""Sessions on what other agents recorded: forks, dictionaries, replay logs and commits of real conversations."""

from itertools import islice
from pathlib import Path

import pytest

from palaver import MemoryStore
from palaver.session import Dialog, Session, rebuild
from palaver.testing.session_laws import check_session
from palaver.transcripts import Importer
from tests.recorded import Recording, recordings

SEVEN = ("claude_code", "codex", "pi", "tau_bench", "tau2_bench", "mini_swe_agent", "openhands_llm_calls")


def _imported(recording: Recording) -> list[Session]:
    store = MemoryStore()
    found = list(islice(Importer(store, keep_source=False).import_path(recording.path), 2))
    return [Session.open(store, imported.session_id) for imported in found]


@pytest.mark.parametrize("recording", recordings(*SEVEN, each=2))
def test_recorded_dialogs_read_and_fork_exactly(recording: Recording) -> None:
    """Counts, indexes and forks of every dialog are those of the plain list of its messages."""
    for session in _imported(recording):
        check_session(session)
        for dialog in session.dialogs:
            plain = list(dialog.messages)
            count = len(plain)
            assert len(dialog.messages) == count
            assert all(
                dialog.messages[at] == plain[at] for at in {0, count // 3, count // 2, count - 1} & set(range(count))
            )
            for last_n, first_k in ((1, 1), (3, 1), (count // 2, count // 4), (count // 3, 0)):
                whole = last_n == 0 or last_n + first_k >= count
                kept = plain if whole else plain[:first_k] + plain[count - last_n :]
                assert dialog.fork(last_n, first_k).messages == kept


@pytest.mark.parametrize("recording", recordings(*SEVEN, each=1))
def test_recorded_sessions_survive_dictionaries_and_logs(recording: Recording, tmp_path: Path) -> None:
    """Read from its dictionary, or rebuilt from a replay log, a real session is the same: ids, entries, media, tree."""
    for session in _imported(recording):
        fields = session.root.to_dict()
        assert Dialog.from_dict(fields).to_dict() == fields
        log = tmp_path / session.session_id
        Session.open(session.store, session.session_id, log_base=log)
        again = rebuild(log)
        assert [dialog.dialog_id for dialog in again.dialogs] == [dialog.dialog_id for dialog in session.dialogs]
        assert again.root.to_dict() == fields
