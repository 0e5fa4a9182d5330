"""Exporting: a file that only its owner reads, whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, NotFound
from palaver.messages import Usage
from palaver.testing.logs import Log, model, result, system, user
from palaver.transcripts import export, partial_path, write_file
from palaver.transcripts.exporting import EXPORTS, TOOLS


def talk() -> Log:
    """Return a session with a call."""
    log = Log()
    log.put(system("Be brief."), user("go"), model("I look.", "a"), result("a"), model("Done."))
    log.store.update_session(log.session, root=log.dialog)
    return log


def test_unknown_form_or_session_is_not_found() -> None:
    """The error names the forms; a session without a dialog says so."""
    log = talk()
    with pytest.raises(NotFound, match="anthropic"):
        export(log.store, log.session, "antropic")
    with pytest.raises(NotFound):
        export(log.store, Log().session, "markdown")
    log.store.update_session(log.session, root=None)
    with pytest.raises(InvalidInput, match="no dialog"):
        export(log.store, log.session, "markdown")


@pytest.mark.parametrize("tool", TOOLS)
def test_dropped_usage_is_reported(tool: str) -> None:
    """A tool's transcript has no usage of other agents' calls: the report says so where the log has usage, and only there."""
    log = talk()
    assert "usage" not in {change.what for change in export(log.store, log.session, tool).report}
    log.put(model("More.").model_copy(update={"usage": Usage(input_tokens=9)}))
    assert "usage" in {change.what for change in export(log.store, log.session, tool).report.lost()}


@pytest.mark.parametrize("to", EXPORTS)
def test_other_dialogs_are_reported(to: str) -> None:
    """A format of one dialog names the session's others in one change; a bundle has them all."""
    log = talk()
    branches = [log.fork().dialog, log.fork().dialog]
    changes = [change for change in export(log.store, log.session, to).report if "other dialog" in change.what]
    assert len(changes) == (to != "bundle")
    assert all(branch[:12] in change.why for change in changes for branch in branches)


def test_export_is_private_and_appears_whole(tmp_path: Path) -> None:
    """Only the owner may read it, also where a file was that others could read; nothing else is left beside it."""
    target = tmp_path / "out.md"
    target.write_text("old")
    target.chmod(0o644)
    noted: list[bool] = []
    assert write_file(target, iter([b"new ", b"words"]), lambda path: noted.append(path.exists())) == 9
    assert target.read_bytes() == b"new words"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert noted == [False], "the unfinished file is noted before it exists"
    assert [path.name for path in tmp_path.iterdir()] == ["out.md"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_failed_export_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    """An interrupt, too, leaves no half file."""
    target = tmp_path / "out.md"
    target.write_text("old")

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise error

    with pytest.raises(error):
        write_file(target, pieces())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.md", "old")]


def test_killed_export_leaves_one_file_that_is_known(tmp_path: Path) -> None:
    """It lies where `partial_path` says, only the owner may read it, and the next export takes it away."""
    target = tmp_path / "out.md"
    child = os.fork()
    if child == 0:
        write_file(target, iter(lambda: os._exit(9) if partial_path(target).exists() else b"half", None))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert list(tmp_path.iterdir()) == [partial_path(target)]
    assert stat.S_IMODE(partial_path(target).stat().st_mode) == 0o600
    write_file(target, [b"whole"])
    assert [path.name for path in tmp_path.iterdir()] == ["out.md"]
